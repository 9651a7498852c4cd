/* A plugin of qemu's that counts the instructions of a program: `qemu-aarch64 -plugin instructions.so PROGRAM`.
 *
 * The few declarations that it needs of qemu's interface for plugins (version 1) stand here, since Debian's packages have no header of it.
 * With `blocks=FILE` it also writes a line for each block of code: its address, its instructions and how often it ran. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { ADD_U64 = 0 };

struct qemu_plugin_tb;
typedef uint64_t plugin_id;
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int operation, void *, uint64_t);
extern void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);

EXPORT int qemu_plugin_version = 1;

/* Code that is translated again is another block, and counted beside the first. Programs with one thread only: nothing is locked. */
struct block {
    struct block *next;
    uint64_t address, instructions, runs;
};

static struct block *blocks;
static char blocks_path[4096];

static void translated(plugin_id id, struct qemu_plugin_tb *tb) {
    (void)id;
    struct block *block = calloc(1, sizeof *block);
    if (block == NULL) abort();
    *block = (struct block){blocks, qemu_plugin_tb_vaddr(tb), qemu_plugin_tb_n_insns(tb), 0};
    blocks = block;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD_U64, &block->runs, 1);
}

static void finished(plugin_id id, void *unused) {
    (void)id, (void)unused;
    FILE *file = blocks_path[0] ? fopen(blocks_path, "w") : NULL;
    uint64_t total = 0;
    for (const struct block *block = blocks; block != NULL; block = block->next) {
        total += block->instructions * block->runs;
        if (file != NULL) fprintf(file, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", block->address, block->instructions, block->runs);
    }
    if (file != NULL) fclose(file);
    fprintf(stderr, "instructions %" PRIu64 "\n", total);
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int count, char **options) {
    (void)info;
    for (int index = 0; index < count; index++) {
        if (strncmp(options[index], "blocks=", 7) != 0) return 1;
        snprintf(blocks_path, sizeof blocks_path, "%s", options[index] + 7);
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finished, NULL);
    return 0;
}
