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
size_t chip_heap_taken(void);
size_t chip_heap_taken_by_c(void);

/* flash.c: values of up to 255 bytes by keys of up to 31 characters, in two sectors */
void chip_flash_open(const char *path, int cut_after);
int chip_flash_get(const char *key, uint8_t *value); /* its length, or -1 */
bool chip_flash_put(const char *key, const uint8_t *value, size_t size);

/* hmac.c */
#define CHIP_MAC_BYTES 32
void chip_hmac(const uint8_t *key, size_t key_size, const uint8_t *data, size_t size, uint8_t *mac);


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
void chip_add_functions(struct sxMachine *the);
void chip_import(struct sxMachine *the, const char *module);
/* Imports `module` and serves its events. */
_Noreturn void chip_run(const char *module, const char *argument);

/* bake.c */
_Noreturn void chip_bake(const char *modules, const char *image);
struct sxMachine *chip_baked(void); /* the shared machine of the image, which must be this program's */

#endif
