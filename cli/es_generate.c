/* SPDX-License-Identifier: Apache-2.0
 *
 * rondo es-generate: a header with a function of rondo/es.h's kind for each operator. */
#include <ctype.h>
#include <errno.h>
#include <rondo/es.h>
#include <rondo/operator.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char es_help[] =
    "usage: rondo es-generate [LIBRARY.so...] -o FILE.h\n"
    "Writes a header of inline functions that build graphs, one an operator, to be used with rondo/es.h: of the operators of\n"
    "the libraries, or without any of the built-in ones. The operator Add becomes rondo_es_Add, my.domain::AddCustom becomes\n"
    "rondo_es_AddCustom. The file appears whole or not at all.\n";

/* What an operator needs while its function is written. */
typedef struct es_operator {
    FILE *file;
    const rondo_operator_info *info; /* `given` */
    rondo_operator_info given;
    rondo_operator_operand inputs[RONDO_ARGUMENT_MAX], outputs[RONDO_ARGUMENT_MAX];
    rondo_operator_attribute_info attributes[RONDO_ARGUMENT_MAX];
    uint32_t order[RONDO_ARGUMENT_MAX]; /* of the attributes as arguments: graphs, required ones, the others */
    char names[3u * RONDO_ARGUMENT_MAX][96];
    uint32_t name_count;
    char function[128];
    uint32_t fixed_inputs; /* without a dynamic one */
    bool dynamic_input, dynamic_output, tensor_needed;
    uint32_t arguments; /* written so far */
} es_operator;

enum { ES_ARGUMENT_REQUIRED = 0, ES_ARGUMENT_DEFAULT = 1, ES_ARGUMENT_ABSENT = 2 };

static bool reserved(const char *name) {
    static const char *const words[] = {
        "I",        "NULL",     "EOF",     "alignas", "alignof",   "and",     "asm",      "auto",     "bool",
        "break",    "builder",  "case",    "catch",   "char",      "class",   "const",    "continue", "count",
        "decltype", "default",  "delete",  "do",      "double",    "else",    "enum",     "explicit", "export",
        "extern",   "false",    "float",   "for",     "friend",    "goto",    "if",       "inline",   "int",
        "list",     "long",     "made",    "mutable", "namespace", "new",     "node",     "noexcept", "not",
        "nullptr",  "operator", "or",      "private", "protected", "public",  "register", "restrict", "result",
        "return",   "short",    "signed",  "sizeof",  "static",    "struct",  "switch",   "template", "tensors",
        "this",     "throw",    "true",    "try",     "typedef",   "typeid",  "typename", "typeof",   "union",
        "unsigned", "using",    "virtual", "void",    "volatile",  "wchar_t", "while",    "xor"};
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        if (strcmp(name, words[i]) == 0) return true;
    return false;
}

/* The name as one of C, which no other argument of the operator has. Indices are those of the names array: inputs, then
 * outputs, then attributes. */
static const char *claim(es_operator *op, const char *name) {
    char *own = op->names[op->name_count++];
    size_t used = 0;
    for (const char *c = name; *c && used < 80; ++c) own[used++] = isalnum((unsigned char)*c) ? *c : '_';
    own[used] = 0;
    if (!used || isdigit((unsigned char)own[0])) {
        memmove(own + 1, own, used + 1);
        own[0] = '_';
        ++used;
    }
    bool again = reserved(own);
    for (uint32_t i = 0; !again && i + 1 < op->name_count; ++i) again = strcmp(op->names[i], own) == 0;
    while (again && used < 94) {
        own[used++] = '_';
        own[used] = 0;
        again = false;
        for (uint32_t i = 0; i + 1 < op->name_count; ++i) again = again || strcmp(op->names[i], own) == 0;
    }
    return own;
}

static const char *input_name(const es_operator *op, uint32_t i) { return op->names[i]; }
static const char *output_name(const es_operator *op, uint32_t i) { return op->names[op->info->input_count + i]; }
static const char *attribute_name(const es_operator *op, uint32_t i) {
    return op->names[op->info->input_count + op->info->output_count + i];
}

/* Texts of prototypes are for people: they must not end the comment or the literal that they stand in. */
static void put_comment(FILE *file, const char *text) {
    for (const char *c = text ? text : ""; *c; ++c)
        fputc((*c == '/' && c > text && c[-1] == '*') || (unsigned char)*c < 32 ? ' ' : *c, file);
}

static void put_literal(FILE *file, const char *text) {
    fputc('"', file);
    for (const char *c = text; *c; ++c) {
        unsigned char byte = (unsigned char)*c;
        if (byte == '"' || byte == '\\') fprintf(file, "\\%c", byte);
        else if (byte < 32 || byte > 126 || byte == '?') fprintf(file, "\\%03o", byte);
        else fputc(byte, file);
    }
    fputc('"', file);
}

/* ------------------------------------------------------------------------------------------------------- defaults */

static bool is_int(const char *text) {
    int64_t value;
    return cli_parse_i64(text, &value) && value > INT64_MIN;
}

static bool is_real(const char *text) {
    double value;
    return cli_parse_f64(text, &value) && value - value == 0;
}

/* "[1,2]": whether it is a list of such numbers, and how many. */
static bool is_list(const char *text, bool (*number)(const char *text), int *out_count) {
    char word[64];
    size_t used = 0;
    *out_count = 0;
    if (*text++ != '[') return false;
    if (strcmp(text, "]") == 0) return true;
    for (; *text; ++text) {
        if (*text != ',' && *text != ']') {
            if (*text != ' ' && used + 1 < sizeof word) word[used++] = *text;
            continue;
        }
        word[used] = 0;
        if (!number(word)) return false;
        used = 0;
        ++*out_count;
        if (*text == ']') return text[1] == 0;
    }
    return false;
}

/* How an attribute is given: always, by a value whose default is left out, or in a form that can be absent. */
static int argument_of(const rondo_operator_attribute_info *attribute) {
    const char *text = attribute->default_text;
    int count;
    if (attribute->required) return ES_ARGUMENT_REQUIRED;
    if (!text) return ES_ARGUMENT_ABSENT;
    switch (attribute->kind) {
    case RONDO_ATTRIBUTE_INT: return is_int(text) ? ES_ARGUMENT_DEFAULT : ES_ARGUMENT_ABSENT;
    case RONDO_ATTRIBUTE_FLOAT: return is_real(text) ? ES_ARGUMENT_DEFAULT : ES_ARGUMENT_ABSENT;
    case RONDO_ATTRIBUTE_STRING: return ES_ARGUMENT_DEFAULT;
    case RONDO_ATTRIBUTE_INTS: return is_list(text, is_int, &count) && count ? ES_ARGUMENT_DEFAULT : ES_ARGUMENT_ABSENT;
    default: return ES_ARGUMENT_ABSENT;
    }
}

/* ------------------------------------------------------------------------------------------------------ arguments */

static void next_argument(es_operator *op) { fputs(op->arguments++ ? ", " : "", op->file); }

static void put_attribute_argument(es_operator *op, uint32_t i) {
    const char *name = attribute_name(op, i);
    bool absent = argument_of(&op->attributes[i]) == ES_ARGUMENT_ABSENT;
    next_argument(op);
    switch (op->attributes[i].kind) {
    case RONDO_ATTRIBUTE_INT: fprintf(op->file, absent ? "const int64_t *%s" : "int64_t %s", name); break;
    case RONDO_ATTRIBUTE_FLOAT: fprintf(op->file, absent ? "const float *%s" : "float %s", name); break;
    case RONDO_ATTRIBUTE_STRING: fprintf(op->file, "const char *%s", name); break;
    case RONDO_ATTRIBUTE_INTS: fprintf(op->file, "const int64_t *%s, int64_t %s_num", name, name); break;
    case RONDO_ATTRIBUTE_FLOATS: fprintf(op->file, "const float *%s, int64_t %s_num", name, name); break;
    case RONDO_ATTRIBUTE_STRINGS: fprintf(op->file, "const rondo_string *%s, int64_t %s_num", name, name); break;
    case RONDO_ATTRIBUTE_TENSOR: fprintf(op->file, "rondo_tensor *%s", name); break;
    default: fprintf(op->file, "rondo_ir_graph *%s", name); break;
    }
}

static void put_arguments(es_operator *op) {
    op->arguments = 0;
    for (uint32_t i = 0; i < op->info->input_count; ++i) {
        next_argument(op);
        if (op->inputs[i].presence == RONDO_OPERATOR_DYNAMIC)
            fprintf(op->file, "rondo_es_tensor *const *%s, int64_t %s_num", input_name(op, i), input_name(op, i));
        else fprintf(op->file, "rondo_es_tensor *%s", input_name(op, i));
    }
    if (!op->tensor_needed) {
        next_argument(op);
        fputs("rondo_es_builder *builder", op->file);
    }
    if (op->dynamic_output) {
        next_argument(op);
        fprintf(op->file, "int64_t %s_num", output_name(op, op->info->output_count - 1));
    }
    for (uint32_t i = 0; i < op->info->attribute_count; ++i) put_attribute_argument(op, op->order[i]);
    if (!op->arguments) fputs("void", op->file);
}

/* ----------------------------------------------------------------------------------------------------------- body */

static void put_attribute(es_operator *op, uint32_t i) {
    const rondo_operator_attribute_info *attribute = &op->attributes[i];
    static const char *const kinds[] = {"", "int", "float", "string", "ints", "floats", "strings", "tensor", "graph"};
    const char *name = attribute_name(op, i), *text = attribute->default_text;
    int how = argument_of(attribute), count = 0;
    bool counted = attribute->kind == RONDO_ATTRIBUTE_INTS || attribute->kind == RONDO_ATTRIBUTE_FLOATS ||
                   attribute->kind == RONDO_ATTRIBUTE_STRINGS;
    bool by_pointer = how == ES_ARGUMENT_ABSENT &&
                      (attribute->kind == RONDO_ATTRIBUTE_INT || attribute->kind == RONDO_ATTRIBUTE_FLOAT);
    if (how == ES_ARGUMENT_DEFAULT && attribute->kind == RONDO_ATTRIBUTE_INT) {
        fprintf(op->file, "    if (%s != INT64_C(%s)) ", name, text);
    } else if (how == ES_ARGUMENT_DEFAULT && attribute->kind == RONDO_ATTRIBUTE_FLOAT) {
        fprintf(op->file, "    const float %s_default = (float)(%s);\n", name, text);
        fprintf(op->file, "    if (!rondo_es_same(&%s, 1, &%s_default, 1, sizeof(float))) ", name, name);
    } else if (how == ES_ARGUMENT_DEFAULT && attribute->kind == RONDO_ATTRIBUTE_STRING) {
        fprintf(op->file, "    if (%s && strcmp(%s, ", name, name);
        put_literal(op->file, text);
        fputs(") != 0) ", op->file);
    } else if (how == ES_ARGUMENT_DEFAULT) {
        (void)is_list(text, is_int, &count);
        fprintf(op->file, "    const int64_t %s_default[%d] = {%.*s};\n", name, count, (int)strlen(text) - 2, text + 1);
        fprintf(op->file, "    if (%s && !rondo_es_same(%s, %s_num, %s_default, %d, sizeof(int64_t))) ", name, name,
                name, name, count);
    } else if (how == ES_ARGUMENT_ABSENT) {
        fprintf(op->file, "    if (%s) ", name);
    } else {
        fputs("    ", op->file);
    }
    fprintf(op->file, "rondo_es_put_%s(list, &count, ", kinds[attribute->kind]);
    put_literal(op->file, attribute->name);
    fprintf(op->file, ", %s%s", by_pointer ? "*" : "", name);
    if (counted) fprintf(op->file, ", %s_num", name);
    fputs(");\n", op->file);
}

static void put_result(es_operator *op) {
    uint32_t outputs = op->info->output_count;
    if (outputs == 1 && !op->dynamic_output) {
        fputs("    return made ? made[0] : NULL;\n", op->file);
        return;
    }
    for (uint32_t i = 0; i < outputs; ++i) {
        const char *name = output_name(op, i);
        if (i + 1 == outputs && op->dynamic_output)
            fprintf(op->file, "    result.%s = made ? made + %u : NULL;\n    result.%s_num = made ? %s_num : 0;\n",
                    name, i, name, name);
        else fprintf(op->file, "    result.%s = made ? made[%u] : NULL;\n", name, i);
    }
    fputs("    return result;\n", op->file);
}

static void put_body(es_operator *op, const char *type) {
    const rondo_operator_info *info = op->info;
    FILE *file = op->file;
    fputs(" {\n    rondo_es_node node = RONDO_ES_NODE_INIT;\n", file);
    if (*type == 's') fprintf(file, "    %s result;\n", type);
    if (op->fixed_inputs) {
        fputs("    rondo_es_tensor *tensors[] = {", file);
        for (uint32_t i = 0; i < op->fixed_inputs; ++i) fprintf(file, "%s%s", i ? ", " : "", input_name(op, i));
        fprintf(file, "};\n    node.inputs = tensors;\n    node.input_count = %u;\n", op->fixed_inputs);
    }
    if (op->dynamic_input) {
        const char *name = input_name(op, info->input_count - 1);
        fprintf(file, "    node.more = %s;\n    node.more_count = %s_num;\n", name, name);
    }
    if (!op->tensor_needed) fputs("    node.owner = builder;\n", file);
    if (info->attribute_count) {
        fprintf(file, "    rondo_attribute list[%u];\n    uint32_t count = 0;\n", info->attribute_count);
        for (uint32_t i = 0; i < info->attribute_count; ++i) put_attribute(op, op->order[i]);
        fputs("    node.attributes = list;\n    node.attribute_count = count;\n", file);
    }
    fputs("    node.operator_name = ", file);
    put_literal(file, info->name);
    if (op->dynamic_output)
        fprintf(file, ";\n    node.output_count = %s_num < 0 ? -1 : %u + %s_num;\n",
                output_name(op, info->output_count - 1), info->output_count - 1,
                output_name(op, info->output_count - 1));
    else fprintf(file, ";\n    node.output_count = %u;\n", info->output_count);
    fputs("    rondo_es_tensor **made = rondo_es_add(&node);\n", file);
    for (uint32_t i = 0; i < info->attribute_count; ++i)
        if (op->attributes[i].kind == RONDO_ATTRIBUTE_TENSOR)
            fprintf(file, "    rondo_tensor_release(%s);\n", attribute_name(op, i));
    put_result(op);
    fputs("}\n\n", file);
}

/* ------------------------------------------------------------------------------------------------------- comments */

static void put_operand_comment(es_operator *op, const rondo_operator_operand *operand, const char *name, bool input) {
    static const char *const presences[] = {"", ", optional", ", a list"};
    uint32_t shown = 0;
    fprintf(op->file, " *   %s %s%s:", input ? "input" : "output", name, presences[operand->presence]);
    for (rondo_dtype d = 1; d < RONDO_DTYPE_COUNT; ++d) {
        if (!(operand->dtypes >> d & 1u)) continue;
        if (shown++ < 6) fprintf(op->file, " %s", rondo_dtype_name(d));
    }
    if (shown > 6) fprintf(op->file, " and %u more types", shown - 6);
    if (operand->same_type) fprintf(op->file, " (one type for all marked %c)", operand->same_type);
    fputc('\n', op->file);
}

static void put_comments(es_operator *op) {
    const rondo_operator_info *info = op->info;
    fprintf(op->file, "/* %s: ", info->name);
    put_comment(op->file, info->summary ? info->summary : "");
    fputc('\n', op->file);
    for (uint32_t i = 0; i < info->input_count; ++i) put_operand_comment(op, &op->inputs[i], input_name(op, i), true);
    for (uint32_t i = 0; i < info->output_count; ++i)
        put_operand_comment(op, &op->outputs[i], output_name(op, i), false);
    for (uint32_t i = 0; i < info->attribute_count; ++i) {
        const rondo_operator_attribute_info *attribute = &op->attributes[op->order[i]];
        fprintf(op->file, " *   attribute %s", attribute_name(op, op->order[i]));
        if (attribute->required) fputs(", required", op->file);
        if (attribute->default_text) {
            fputs(", else ", op->file);
            put_comment(op->file, attribute->default_text);
        }
        if (attribute->kind == RONDO_ATTRIBUTE_TENSOR || attribute->kind == RONDO_ATTRIBUTE_GRAPH)
            fputs("; taken over, also when the call fails", op->file);
        fputc('\n', op->file);
    }
    fputs(" */\n", op->file);
}

/* The function's first lines, in lines of 120. */
static void put_head(es_operator *op, const char *type) {
    FILE *file = op->file;
    char *text = NULL;
    size_t size = 0;
    op->file = open_memstream(&text, &size);
    if (!op->file) {
        op->file = file;
        fputs("#error \"no memory\"\n", file);
        return;
    }
    fprintf(op->file, "static inline %s%s(", type, op->function);
    size_t indent = (size_t)ftell(op->file), column = 0;
    put_arguments(op);
    fputc(')', op->file);
    (void)fclose(op->file);
    op->file = file;
    for (const char *word = text; word && *word;) {
        size_t length = strcspn(word + 1, ",") + 1;
        length += word[length] == ',';
        if (column + length > 118 && column > indent) {
            column = indent;
            fprintf(file, "\n%*s", (int)indent, "");
            word += *word == ' ';
            length = strcspn(word, ",") + (word[strcspn(word, ",")] == ',');
        }
        fprintf(file, "%.*s", (int)length, word);
        column += length;
        word += length;
    }
    free(text);
}

static void put_operator(es_operator *op) {
    char type[192] = "rondo_es_tensor *";
    put_comments(op);
    if (op->info->output_count > 1 || op->dynamic_output) {
        snprintf(type, sizeof type, "struct %s_outputs", op->function);
        fprintf(op->file, "%s {\n", type);
        for (uint32_t i = 0; i < op->info->output_count; ++i) {
            bool list = op->dynamic_output && i + 1 == op->info->output_count;
            fprintf(op->file, "    rondo_es_tensor *%s%s;\n", list ? "*" : "", output_name(op, i));
            if (list) fprintf(op->file, "    int64_t %s_num;\n", output_name(op, i));
        }
        fputs("};\n", op->file);
        strncat(type, " ", sizeof type - strlen(type) - 1);
    }
    put_head(op, type);
    type[strlen(type) - 1] = 0; /* the blank or the star */
    put_body(op, type);
}

/* ----------------------------------------------------------------------------------------------------- collecting */

static void set_order(es_operator *op) {
    uint32_t used = 0;
    for (int pass = 0; pass < 3; ++pass) {
        for (uint32_t i = 0; i < op->info->attribute_count; ++i) {
            bool graph = op->attributes[i].kind == RONDO_ATTRIBUTE_GRAPH;
            int wanted = graph ? 0 : op->attributes[i].required ? 1 : 2;
            if (wanted == pass) op->order[used++] = i;
        }
    }
}

static rondo_status collect(es_operator *op) {
    const rondo_operator_info *info = op->info;
    rondo_status status = RONDO_OK;
    if (info->input_count > RONDO_ARGUMENT_MAX || info->output_count > RONDO_ARGUMENT_MAX ||
        info->attribute_count > RONDO_ARGUMENT_MAX || !info->output_count)
        return rondo_status_make(RONDO_CODE_OUT_OF_RANGE, RONDO_LAYER_PROTOTYPE, "an operator has too many arguments");
    for (uint32_t i = 0; i < info->input_count && !status; ++i) {
        status = rondo_operator_info_input(info, i, &op->inputs[i]);
        if (!status && strncmp(op->inputs[i].name, "rondo.", 6) == 0) {
            op->given.input_count = i; /* only the compiler adds these, behind the others */
            break;
        }
        if (status) break;
        (void)claim(op, op->inputs[i].name);
        op->dynamic_input = op->inputs[i].presence == RONDO_OPERATOR_DYNAMIC;
        op->tensor_needed = op->tensor_needed || op->inputs[i].presence != RONDO_OPERATOR_OPTIONAL;
        if (!op->dynamic_input) op->fixed_inputs = i + 1;
    }
    for (uint32_t i = 0; i < info->output_count && !status; ++i) {
        status = rondo_operator_info_output(info, i, &op->outputs[i]);
        if (status) break;
        (void)claim(op, op->outputs[i].name);
        op->dynamic_output = op->outputs[i].presence == RONDO_OPERATOR_DYNAMIC;
    }
    for (uint32_t i = 0; i < info->attribute_count && !status; ++i) {
        status = rondo_operator_info_attribute(info, i, &op->attributes[i]);
        if (!status) (void)claim(op, op->attributes[i].name);
    }
    if (!status) set_order(op);
    return status;
}

static int generate_all(rondo_instance *instance, FILE *file, bool registered) {
    for (uint32_t i = 0;; ++i) {
        rondo_operator_info info = RONDO_OPERATOR_INFO_INIT;
        rondo_status status = rondo_operator_at(instance, i, &info);
        if (rondo_status_code(status) == RONDO_CODE_NOT_FOUND) {
            rondo_status_release(status);
            return CLI_DONE;
        }
        if (status) return cli_report(status);
        if (registered != ((info.flags & RONDO_OPERATOR_INFO_REGISTERED) != 0)) continue;
        es_operator *op = cli_allocate(1, sizeof *op);
        const char *domain = strstr(info.name, "::");
        op->file = file;
        op->given = info;
        op->info = &op->given;
        snprintf(op->function, sizeof op->function, "rondo_es_%.100s", domain ? domain + 2 : info.name);
        status = collect(op);
        if (!status) put_operator(op);
        free(op);
        if (status) return cli_report(status);
    }
}

static int generate_file(rondo_instance *instance, const cli_options *options, const char *path) {
    char guard[128];
    const char *base = strrchr(options->output, '/');
    size_t used = 0;
    for (const char *c = base ? base + 1 : options->output; *c && used < 100; ++c)
        guard[used++] = (char)(isalnum((unsigned char)*c) ? toupper((unsigned char)*c) : '_');
    guard[used] = 0;
    FILE *file = fopen(path, "w");
    if (!file) return cli_fail(CLI_BAD_DATA, "%s: %s", path, strerror(errno));
    fprintf(
        file,
        "/* SPDX-License-Identifier: Apache-2.0\n *\n"
        " * Written by \"rondo es-generate\", version %s: a function for each operator; rondo/es.h tells how they are\n"
        " * made and used. They build and never run. */\n#ifndef RONDO_ES_%s\n#define RONDO_ES_%s\n\n"
        "#include <rondo/es.h>\n#include <string.h>\n\n",
        RONDO_VERSION_STRING, guard, guard);
    int code = generate_all(instance, file, options->file_count > 0);
    fputs("#endif\n", file);
    bool written = !ferror(file);
    if ((fclose(file) != 0 || !written) && code == CLI_DONE)
        code = cli_fail(CLI_BAD_DATA, "%s: cannot be written", path);
    return code;
}

static int generate(const cli_options *options) {
    if (!options->output) return cli_usage("-o FILE.h is wanted (rondo es-generate --help)");
    rondo_instance *instance = NULL;
    size_t size = strlen(options->output) + 8;
    char *path = cli_allocate(size, 1);
    snprintf(path, size, "%s.new", options->output);
    rondo_instance_options quiet = RONDO_INSTANCE_OPTIONS_INIT;
    quiet.ignore_plugin_path = 1; /* the libraries are those on the command line */
    int code = cli_report(rondo_instance_create(&quiet, &instance));
    for (uint32_t i = 0; i < options->file_count && code == CLI_DONE; ++i)
        code = cli_report(rondo_operator_load(instance, options->files[i]));
    if (code == CLI_DONE) code = generate_file(instance, options, path);
    if (code == CLI_DONE && rename(path, options->output) != 0)
        code = cli_fail(CLI_BAD_DATA, "%s: %s", options->output, strerror(errno));
    if (code != CLI_DONE) (void)remove(path);
    rondo_instance_release(instance);
    free(path);
    return code;
}

int cli_es_generate(int argc, char **argv) {
    cli_options *options = cli_allocate(1, sizeof *options);
    int code = cli_parse(argc, argv, CLI_OPT_COMPILE, options);
    if (code == CLI_DONE && options->help) fputs(es_help, stdout);
    else if (code == CLI_DONE) code = generate(options);
    cli_options_free(options);
    free(options);
    return code;
}
