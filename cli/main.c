/* SPDX-License-Identifier: Apache-2.0
 *
 * The tool: one program, one table of commands. */
#include <string.h>

#include "cli.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"devices", cli_devices, "backends and devices, and what each can do"},
    {"info", cli_info, "inputs, outputs, nodes by type and sizes of a model; what an offline file holds"},
    {"run", cli_run, "load, compile, capture, replay; write the outputs"},
    {"bench", cli_bench, "what a model costs: load, compile, capture, replay, eager"},
    {"profile", cli_profile, "what runs spend their time on, node by node, and whether capture helps"},
    {"check", cli_check, "run test folders of ONNX or TensorFlow models"},
    {"dump", cli_dump, "a stage of a model as text, dot or json"},
    {"compile", cli_compile, "an offline file from a model"},
    {"passes", cli_passes, "what the compiler does, pass by pass"},
    {"ops", cli_ops, "operators, what they take and give, and who has kernels for them"},
    {"es-generate", cli_es_generate, "a header of functions that build graphs, one an operator"},
    {"check-operator", cli_check_operator, "the contracts of an operator, asked of each other"},
    {"conformance", cli_conformance, "the contract, on any backend"},
};

static void print_help(FILE *file) {
    fputs("usage: rondo COMMAND [ARGUMENTS]\n"
          "Capture once, replay everywhere: graph capture for any device, and operators into graphs.\n\n",
          file);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; ++i)
        fprintf(file, "  %-14s %s\n", commands[i].name, commands[i].summary);
    fputs(
        "\nrondo COMMAND --help explains one; rondo --version prints the version.\n"
        "exit codes: 0 done; 1 bad file, tensor or output; 2 bad command line; 3 unsupported operator or absent device\n",
        file);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_help(stdout);
        return CLI_DONE;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
        printf("rondo %s\n", rondo_version());
        return CLI_DONE;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; ++i) {
        if (strcmp(name, commands[i].name) != 0) continue;
        int code = commands[i].run(argc - 1, argv + 1);
        /* A full disk or a closed pipe must not look like success. */
        if (fflush(stdout) != 0 && code == CLI_DONE)
            code = cli_fail(CLI_BAD_DATA, "standard output: cannot be written");
        return code;
    }
    return cli_usage("unknown command '%s' (rondo --help)", name);
}
