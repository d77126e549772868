/* What the parts of the chip's host offer one another. */
#ifndef CHIP_H
#define CHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the baked machine lies. */
#define CHIP_BAKED ((uint8_t *)0x21000000)
#define CHIP_BAKED_BYTES (16u * 1024 * 1024)

/* Exit codes, beside XS's own of fxAbort, to which CHIP_ABORTED is added. */
enum { CHIP_WRONG_IMAGE = 3, CHIP_UNCAUGHT = 4, CHIP_POWER_CUT = 5, CHIP_FAULT = 6, CHIP_USAGE = 7, CHIP_ABORTED = 20 };

/* board.c */
_Noreturn void chip_exit(int code);
_Noreturn void chip_restart(void);
/* After what a running device cannot go on: it restarts, if it has a watchdog, else it exits. */
_Noreturn void chip_fail(int code, const char *why);
/* Arms the watchdog: what does not feed it for so long is restarted. */
void chip_watch(uint32_t ms);
void chip_feed(void);
uint32_t chip_watched(void); /* ms; 0: it is not armed */
/* What a start finds as the one before left it; zero when the chip is switched on. */
typedef struct {
  int lives; /* before this one, since the power came back by itself */
  uint32_t written; /* words of the flash, in this life */
  char why[96]; /* the last start failed, or "" */
} chip_remains;
extern chip_remains chip_left;
void chip_print(const char *text);
void chip_protect(void);
char *chip_stack_limit(void);
void chip_use_small_stack(void);
uint32_t chip_stack_peak(void);
uint64_t chip_ticks(void); /* 25 MHz; 40 instructions under -icount shift=0 */
uint64_t chip_busy_ticks(void); /* without those spent waiting */
void chip_sleep(uint32_t ms); /* until then at most; a byte from the line ends it */
size_t chip_line_read(uint8_t *bytes, size_t size);
void chip_line_write(const uint8_t *bytes, size_t size);
int chip_open(const char *path, int mode);
int chip_file_read(int file, void *bytes, size_t size); /* bytes read */
void chip_file_write(int file, const void *bytes, size_t size);
void chip_file_seek(int file, uint32_t at);
void chip_command_line(char *text, size_t size);

/* main.c: the power fails, and comes back */
_Noreturn void chip_cut(void);

/* memory.c */
void chip_heap(uint8_t *memory, size_t size, size_t for_xs);
uint8_t *chip_heap_top(void);
void *chip_heap_keep(size_t size); /* of what XS has not taken yet, until the next start */
size_t chip_heap_taken(void);
size_t chip_heap_taken_by_c(void);

/* flash.c: values of up to 255 bytes by keys of up to 31 characters, in two sectors; and two slots
   for programs */
#define CHIP_SLOT_BYTES (16 * 1024)
void chip_flash_open(const char *path, uint32_t cut_after);
int chip_flash_get(const char *key, uint8_t *value); /* its length, or -1 */
bool chip_flash_put(const char *key, const uint8_t *value, size_t size);
const uint8_t *chip_slot(uint32_t slot); /* its bytes; what is erased is 0xff */
void chip_slot_erase(uint32_t slot);
bool chip_slot_write(uint32_t slot, uint32_t at, const uint8_t *bytes, size_t size);

/* hmac.c */
#define CHIP_MAC_BYTES 32
void chip_hmac(const uint8_t *key, size_t key_size, const uint8_t *data, size_t size, uint8_t *mac);
void chip_sha256(const uint8_t *data, size_t size, uint8_t *digest);

/* aes.c */
#define CHIP_AES_BYTES 16
void chip_aes(const uint8_t *key, uint8_t *block);

/* machine.c: what XS asks of a host, and the global `chip` of JavaScript */
typedef struct {
  const char *name;
  uint8_t *code;
  uint32_t size;
} chip_module;
extern const chip_module *chip_modules;
extern uint32_t chip_module_count;
/* The same in the baked machine and its clone. */
#define CHIP_NAME_MODULO 127
#define CHIP_SYMBOL_MODULO 31
struct sxMachine;
struct sxSlot;
uint8_t *chip_bytes(struct sxMachine *the, struct sxSlot *slot, uint32_t *size); /* of an ArrayBuffer or Uint8Array */
void chip_add_functions(struct sxMachine *the);
void chip_import(struct sxMachine *the, const char *module);
/* The names of a module's code become this machine's, and its functions stay where they are. */
void chip_resolve(struct sxMachine *the, chip_module *module, const uint8_t *names);
/* Imports `module` and serves its events. */
_Noreturn void chip_run(const char *module, const char *argument);

/* program.c: what was pushed */
const chip_module *chip_program(const char *name); /* the one that runs, if it has this name */
void chip_add_program_functions(struct sxMachine *the, struct sxSlot *last); /* to `chip` */

/* bake.c */
_Noreturn void chip_bake(const char *modules, const char *image);
struct sxMachine *chip_baked(void); /* the shared machine of the image, which must be this program's */

#endif
