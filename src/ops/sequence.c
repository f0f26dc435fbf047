/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators on sequences and optionals. These are values of the host: no kernel has them, a session moves them between plans
 * (src/session/hosted.c), and what comes out of them is known when it runs. */
#include "ops/infer.h"

#define SEQUENCE_TENSOR (RONDO__OPS_CLASSIC & ~RONDO__OPS_BIT(BF16))
#define OPTIONAL_INPUT (RONDO__OPS_CLASSIC | RONDO__OPS_NARROW)

static const rondo__ops_operand sequence_concatfromsequence_inputs[] = {{"input_sequence", 0, 'S', 0, 0, 0}};
static const rondo__ops_operand sequence_concatfromsequence_outputs[] = {
    {"concat_result", SEQUENCE_TENSOR, 'T', 0, 0, 0}};
static const rondo__ops_attribute sequence_concatfromsequence_attributes[] = {
    {"axis", RONDO_ATTRIBUTE_INT, 1, NULL}, {"new_axis", RONDO_ATTRIBUTE_INT, 0, "0"}};
const rondo__ops_prototype rondo__ops_ConcatFromSequence = {
    .name = "ConcatFromSequence",
    .summary = "The tensors of a sequence, joined along an axis",
    RONDO__OPS_INPUTS(sequence_concatfromsequence_inputs),
    RONDO__OPS_OUTPUTS(sequence_concatfromsequence_outputs),
    RONDO__OPS_ATTRIBUTES(sequence_concatfromsequence_attributes),
    .flags = RONDO__OPS_HOSTED};

static const rondo__ops_operand sequence_optional_inputs[] = {{"input", OPTIONAL_INPUT, 'V', 1, 0, 0}};
static const rondo__ops_operand sequence_optional_outputs[] = {{"output", 0, 'O', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_Optional = {.name = "Optional",
                                                  .summary = "Its input as an optional, or an empty one",
                                                  RONDO__OPS_INPUTS(sequence_optional_inputs),
                                                  RONDO__OPS_OUTPUTS(sequence_optional_outputs),
                                                  .flags = RONDO__OPS_HOSTED};

static const rondo__ops_operand sequence_optionalgetelement_inputs[] = {{"input", OPTIONAL_INPUT, 'O', 0, 0, 0}};
static const rondo__ops_operand sequence_optionalgetelement_outputs[] = {{"output", OPTIONAL_INPUT, 'V', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_OptionalGetElement = {.name = "OptionalGetElement",
                                                            .summary = "What an optional holds",
                                                            RONDO__OPS_INPUTS(sequence_optionalgetelement_inputs),
                                                            RONDO__OPS_OUTPUTS(sequence_optionalgetelement_outputs),
                                                            .flags = RONDO__OPS_HOSTED};

static const rondo__ops_operand sequence_optionalhaselement_inputs[] = {{"input", OPTIONAL_INPUT, 'O', 1, 0, 0}};
static const rondo__ops_operand sequence_optionalhaselement_outputs[] = {{"output", RONDO__OPS_BIT(BOOL), 0, 0, 0, 0}};
const rondo__ops_prototype rondo__ops_OptionalHasElement = {.name = "OptionalHasElement",
                                                            .summary = "Whether an optional holds something",
                                                            RONDO__OPS_INPUTS(sequence_optionalhaselement_inputs),
                                                            RONDO__OPS_OUTPUTS(sequence_optionalhaselement_outputs),
                                                            .flags = RONDO__OPS_HOSTED};

static const rondo__ops_operand sequence_sequenceat_inputs[] = {{"input_sequence", 0, 'S', 0, 0, 0},
                                                                {"position", RONDO__OPS_INDEX, 'I', 0, 0, 0}};
static const rondo__ops_operand sequence_sequenceat_outputs[] = {{"tensor", SEQUENCE_TENSOR, 'T', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_SequenceAt = {.name = "SequenceAt",
                                                    .summary = "A tensor of a sequence",
                                                    RONDO__OPS_INPUTS(sequence_sequenceat_inputs),
                                                    RONDO__OPS_OUTPUTS(sequence_sequenceat_outputs),
                                                    .flags = RONDO__OPS_HOSTED};

static const rondo__ops_operand sequence_sequenceconstruct_inputs[] = {{"inputs", SEQUENCE_TENSOR, 'T', 0, 1, 0}};
static const rondo__ops_operand sequence_sequenceconstruct_outputs[] = {{"output_sequence", 0, 'S', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_SequenceConstruct = {.name = "SequenceConstruct",
                                                           .summary = "A sequence of its inputs",
                                                           RONDO__OPS_INPUTS(sequence_sequenceconstruct_inputs),
                                                           RONDO__OPS_OUTPUTS(sequence_sequenceconstruct_outputs),
                                                           .flags = RONDO__OPS_HOSTED};

static const rondo__ops_operand sequence_sequenceempty_outputs[] = {{"output", 0, 'S', 0, 0, 0}};
static const rondo__ops_attribute sequence_sequenceempty_attributes[] = {{"dtype", RONDO_ATTRIBUTE_INT, 0, "1"}};
const rondo__ops_prototype rondo__ops_SequenceEmpty = {.name = "SequenceEmpty",
                                                       .summary = "A sequence of nothing",
                                                       RONDO__OPS_OUTPUTS(sequence_sequenceempty_outputs),
                                                       RONDO__OPS_ATTRIBUTES(sequence_sequenceempty_attributes),
                                                       .flags = RONDO__OPS_HOSTED};

static const rondo__ops_operand sequence_sequenceerase_inputs[] = {{"input_sequence", 0, 'S', 0, 0, 0},
                                                                   {"position", RONDO__OPS_INDEX, 'I', 1, 0, 0}};
static const rondo__ops_operand sequence_sequenceerase_outputs[] = {{"output_sequence", 0, 'S', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_SequenceErase = {.name = "SequenceErase",
                                                       .summary = "A sequence without one of its tensors",
                                                       RONDO__OPS_INPUTS(sequence_sequenceerase_inputs),
                                                       RONDO__OPS_OUTPUTS(sequence_sequenceerase_outputs),
                                                       .flags = RONDO__OPS_HOSTED};

static const rondo__ops_operand sequence_sequenceinsert_inputs[] = {{"input_sequence", 0, 'S', 0, 0, 0},
                                                                    {"tensor", SEQUENCE_TENSOR, 'T', 0, 0, 0},
                                                                    {"position", RONDO__OPS_INDEX, 'I', 1, 0, 0}};
static const rondo__ops_operand sequence_sequenceinsert_outputs[] = {{"output_sequence", 0, 'S', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_SequenceInsert = {.name = "SequenceInsert",
                                                        .summary = "A sequence with one tensor more",
                                                        RONDO__OPS_INPUTS(sequence_sequenceinsert_inputs),
                                                        RONDO__OPS_OUTPUTS(sequence_sequenceinsert_outputs),
                                                        .flags = RONDO__OPS_HOSTED};

static const rondo__ops_operand sequence_sequencelength_inputs[] = {{"input_sequence", 0, 'S', 0, 0, 0}};
static const rondo__ops_operand sequence_sequencelength_outputs[] = {{"length", RONDO__OPS_BIT(I64), 'I', 0, 0, 0}};
const rondo__ops_prototype rondo__ops_SequenceLength = {.name = "SequenceLength",
                                                        .summary = "How many tensors a sequence has",
                                                        RONDO__OPS_INPUTS(sequence_sequencelength_inputs),
                                                        RONDO__OPS_OUTPUTS(sequence_sequencelength_outputs),
                                                        .flags = RONDO__OPS_HOSTED};

static const rondo__ops_operand sequence_sequencemap_inputs[] = {
    {"input_sequence", 0, 'S', 0, 0, 0}, {"additional_inputs", SEQUENCE_TENSOR, 'V', 0, RONDO__OPS_ANY_NUMBER, 0}};
static const rondo__ops_operand sequence_sequencemap_outputs[] = {{"out_sequence", 0, 'S', 0, 1, 0}};
static const rondo__ops_attribute sequence_sequencemap_attributes[] = {{"body", RONDO_ATTRIBUTE_GRAPH, 1, NULL}};
const rondo__ops_prototype rondo__ops_SequenceMap = {.name = "SequenceMap",
                                                     .summary = "A graph on each tensor of a sequence",
                                                     RONDO__OPS_INPUTS(sequence_sequencemap_inputs),
                                                     RONDO__OPS_OUTPUTS(sequence_sequencemap_outputs),
                                                     RONDO__OPS_ATTRIBUTES(sequence_sequencemap_attributes),
                                                     .flags = RONDO__OPS_HOSTED | RONDO__OPS_CONTROL};

static const rondo__ops_operand sequence_splittosequence_inputs[] = {{"input", RONDO__OPS_CLASSIC, 'T', 0, 0, 0},
                                                                     {"split", RONDO__OPS_INDEX, 'I', 1, 0, 0}};
static const rondo__ops_operand sequence_splittosequence_outputs[] = {{"output_sequence", 0, 'S', 0, 0, 0}};
static const rondo__ops_attribute sequence_splittosequence_attributes[] = {{"axis", RONDO_ATTRIBUTE_INT, 0, "0"},
                                                                           {"keepdims", RONDO_ATTRIBUTE_INT, 0, "1"}};
const rondo__ops_prototype rondo__ops_SplitToSequence = {.name = "SplitToSequence",
                                                         .summary = "A tensor cut along an axis",
                                                         RONDO__OPS_INPUTS(sequence_splittosequence_inputs),
                                                         RONDO__OPS_OUTPUTS(sequence_splittosequence_outputs),
                                                         RONDO__OPS_ATTRIBUTES(sequence_splittosequence_attributes),
                                                         .flags = RONDO__OPS_HOSTED};
