/* Start-up, faults, memory protection, clock, line (UART 0) and files of the host (semihosting). */
#include "chip.h"
#include <string.h>

#define TICKS_PER_MS 25000
#define REG(ADDRESS) (*(volatile uint32_t *)(ADDRESS))

extern uint32_t chip_data, chip_data_end, chip_data_load, chip_bss, chip_bss_end;
#define BIG_STACK_BYTES (128 * 1024) /* as in chip.ld */
extern uint8_t chip_big_stack[BIG_STACK_BYTES];
#define chip_stack_top (chip_big_stack + BIG_STACK_BYTES)
int main(void);

/* Semihosting */

enum { SYS_OPEN = 1, SYS_WRITE0 = 4, SYS_WRITE = 5, SYS_READ = 6, SYS_SEEK = 10, SYS_GET_CMDLINE = 21, SYS_EXIT_EXTENDED = 32 };

static uint32_t ask(uint32_t operation, const void *arguments) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = arguments;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

_Noreturn void chip_exit(int code) {
  const uint32_t arguments[] = {0x20026, (uint32_t)code};
  ask(SYS_EXIT_EXTENDED, arguments);
  for (;;)
    ;
}

void chip_print(const char *text) { ask(SYS_WRITE0, text); }

int chip_open(const char *path, int mode) {
  const uint32_t arguments[] = {(uint32_t)path, (uint32_t)mode, strlen(path)};
  return (int)ask(SYS_OPEN, arguments);
}

int chip_file_read(int file, void *bytes, size_t size) {
  const uint32_t arguments[] = {(uint32_t)file, (uint32_t)bytes, size};
  return (int)(size - ask(SYS_READ, arguments));
}

void chip_file_write(int file, const void *bytes, size_t size) {
  const uint32_t arguments[] = {(uint32_t)file, (uint32_t)bytes, size};
  if (ask(SYS_WRITE, arguments) != 0) {
    chip_print("chip: a file of the host cannot be written\n");
    chip_exit(CHIP_USAGE);
  }
}

void chip_file_seek(int file, uint32_t at) {
  const uint32_t arguments[] = {(uint32_t)file, at};
  ask(SYS_SEEK, arguments);
}

void chip_command_line(char *text, size_t size) {
  const uint32_t arguments[] = {(uint32_t)text, size};
  if (ask(SYS_GET_CMDLINE, arguments) != 0) text[0] = 0;
}

/* Start and faults */

static uint32_t watched;

void chip_fail(int code, const char *why) {
  if (watched == 0) chip_exit(code);
  size_t length = strlen(why);
  if (length >= sizeof chip_left.why) {
    length = sizeof chip_left.why - 1;
    while (length > 0 && (why[length] & 0xc0) == 0x80) length--; /* a character is not divided */
  }
  memcpy(chip_left.why, why, length);
  chip_left.why[length] = 0;
  chip_restart();
}

static void fault(void) {
  chip_print("chip: fault");
  if (REG(0xe000ed28) & 0x80) { /* MMARVALID: of the memory protection */
    const uint32_t address = REG(0xe000ed34);
    char text[] = " at 0x00000000";
    for (int i = 0; i < 8; i++) text[6 + i] = "0123456789abcdef"[(address >> (28 - 4 * i)) & 15];
    chip_print(text);
  }
  chip_print("\n");
  chip_fail(CHIP_FAULT, "a fault");
}

__attribute__((naked)) void chip_reset(void) { __asm__("b chip_start"); }

void chip_start(void) {
  memcpy(&chip_data, &chip_data_load, (size_t)((uint8_t *)&chip_data_end - (uint8_t *)&chip_data));
  memset(&chip_bss, 0, (size_t)((uint8_t *)&chip_bss_end - (uint8_t *)&chip_bss));
  __asm__("cpsid i"); /* interrupts only wake: whoever waits asks for what happened */
  chip_exit(main());
}

_Noreturn void chip_restart(void) {
  REG(0xe000ed0c) = 0x05fa0004; /* SYSRESETREQ */
  for (;;)
    ;
}

/* Watchdog: the first time that it runs out it interrupts, whatever runs. */

#define WATCHDOG 0x40008000
#define WATCHDOG_KEY 0x1acce551

void chip_watch(uint32_t ms) {
  watched = ms;
  REG(WATCHDOG + 0xc00) = WATCHDOG_KEY;
  REG(WATCHDOG) = ms * TICKS_PER_MS;
  REG(WATCHDOG + 8) = 1;
}

void chip_feed(void) {
  if (watched > 0) REG(WATCHDOG) = watched * TICKS_PER_MS;
}

uint32_t chip_watched(void) { return watched; }

static void bite(void) {
  chip_fail(CHIP_FAULT, "it did not respond in time");
}

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    chip_stack_top, chip_reset, bite, fault, fault, fault, fault,
};

/* C stack: the big one bakes; a device has the small one at its top. */

#define SMALL_STACK_BYTES 8192
#define GUARD_BYTES 256
#define UNUSED 0xa5
/* What a function needs that was let in just above the limit: XS checks the stack only now and
   then, such as once for each level of a collection. */
#define RESERVE_BYTES 1280

static uint8_t *stack_bottom = chip_big_stack;

char *chip_stack_limit(void) { return (char *)stack_bottom + RESERVE_BYTES; }

void chip_use_small_stack(void) {
  stack_bottom = chip_stack_top - SMALL_STACK_BYTES;
  uint8_t *here = (uint8_t *)__builtin_frame_address(0) - 128;
  for (uint8_t *at = stack_bottom; at < here; at++) *at = UNUSED;
}

uint32_t chip_stack_peak(void) {
  const uint8_t *at = stack_bottom;
  while (*at == UNUSED) at++;
  return (uint32_t)(chip_stack_top - at);
}

/* Memory protection: the program and the baked machine cannot be written, and nothing touches what
   lies below the stack. All else is as without it. */

enum { READ_ONLY = 6, NO_ACCESS = 0 };

static void region(uint32_t number, uint32_t base, uint32_t log2_bytes, uint32_t access) {
  REG(0xe000ed98) = number;
  REG(0xe000ed9c) = base;
  REG(0xe000eda0) = access << 24 | 2 << 16 | (log2_bytes - 1) << 1 | 1;
}

void chip_protect(void) {
  region(0, 0, 22, READ_ONLY);
  region(1, (uint32_t)CHIP_BAKED, 24, READ_ONLY);
  region(2, (uint32_t)stack_bottom - GUARD_BYTES, 8, NO_ACCESS);
  REG(0xe000ed94) = 5; /* on, with the usual rules for everything else */
  __asm__("dsb; isb");
}

/* Clock: timer 0 counts down without end; timer 1 wakes. */

#define TIMER0 0x40000000
#define TIMER1 0x40001000
#define LONGEST_SLEEP_MS 60000 /* below a turn of the counter, which must not be missed */

uint64_t chip_ticks(void) {
  static uint64_t ticks;
  static bool started;
  if (!started) {
    started = true;
    REG(TIMER0 + 8) = 0xffffffff;
    REG(TIMER0 + 4) = 0xffffffff;
    REG(TIMER0) = 1;
  }
  const uint32_t now = 0xffffffff - REG(TIMER0 + 4);
  ticks += now - (uint32_t)ticks;
  return ticks;
}

static uint64_t slept;

uint64_t chip_busy_ticks(void) { return chip_ticks() - slept; }

/* Line */

#define UART0 0x40004000
#define IRQ_LINE 0
#define IRQ_TIMER1 9

static void line_open(void) {
  static bool opened;
  if (opened) return;
  opened = true;
  REG(UART0 + 16) = 16;
  REG(UART0 + 8) = 1 | 2 | 8;
  REG(0xe000e100) = 1 << IRQ_LINE | 1 << IRQ_TIMER1;
}

size_t chip_line_read(uint8_t *bytes, size_t size) {
  size_t length = 0;
  line_open();
  while (length < size && (REG(UART0 + 4) & 2)) {
    bytes[length++] = (uint8_t)REG(UART0);
    REG(UART0 + 12) = 2;
  }
  return length;
}

void chip_line_write(const uint8_t *bytes, size_t size) {
  line_open();
  for (size_t i = 0; i < size; i++) {
    while (REG(UART0 + 4) & 1)
      ;
    REG(UART0) = bytes[i];
  }
}

void chip_sleep(uint32_t ms) {
  line_open();
  const uint64_t before = chip_ticks();
  if (ms > LONGEST_SLEEP_MS) ms = LONGEST_SLEEP_MS;
  REG(TIMER1) = 0;
  REG(TIMER1 + 12) = 1;
  REG(0xe000e280) = 1 << IRQ_LINE | 1 << IRQ_TIMER1;
  REG(TIMER1 + 4) = ms * TICKS_PER_MS + 1;
  REG(TIMER1 + 8) = ms * TICKS_PER_MS + 1;
  REG(TIMER1) = 1 | 8;
  if (!(REG(UART0 + 4) & 2)) __asm__ volatile("wfi" ::: "memory");
  REG(TIMER1) = 0;
  slept += chip_ticks() - before;
}
