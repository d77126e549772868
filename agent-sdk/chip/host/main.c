/* The words after the program's name say what this boot is for:

     bake MODULES IMAGE            from compiled modules to an image
     run MODULE FLASH CUTS WORDS…  a device; CUTS, as 5,12,0: after so many words written to the
                                   flash, also over restarts, the power fails in its first,
                                   second, … life; 0: never */
#include "chip.h"
#include <stdlib.h>
#include <string.h>

#define HEAP_BYTES (128 * 1024)
/* Of these, XS has all but this. */
#define C_HEAP_BYTES (10 * 1024)

static uint8_t heap[HEAP_BYTES] __attribute__((aligned(8)));
static char line[2048];

void chip_cut(void) {
  chip_print("chip: the power fails\n");
  chip_left = (chip_remains){.lives = chip_left.lives + 1};
  chip_restart();
}

/* Of this life; after the last one listed there is none. */
static int cut_of(const char *list) {
  for (int i = 0; i < chip_left.lives; i++) {
    list = strchr(list, ',');
    if (list == NULL) chip_exit(CHIP_POWER_CUT);
    list++;
  }
  return atoi(list);
}

int main(void) {
  char *words[6] = {0};
  chip_command_line(line, sizeof line);
  char *rest = line;
  for (int i = 0; i < 6 && rest != NULL; i++) {
    words[i] = rest;
    rest = strchr(rest, ' ');
    if (rest != NULL && i < 5) *rest++ = 0;
  }
  const char *what = words[1] == NULL ? "" : words[1];
  if (!strcmp(what, "bake") && words[3] != NULL) chip_bake(words[2], words[3]);
  if (words[4] == NULL) {
    chip_print("chip: use: bake MODULES IMAGE | run MODULE FLASH CUT WORDS\n");
    return CHIP_USAGE;
  }
  chip_ticks(); /* starts the clock */
  chip_use_small_stack();
  chip_flash_open(words[3], cut_of(words[4]));
  chip_heap(heap, sizeof heap, HEAP_BYTES - C_HEAP_BYTES);
  chip_protect();
  chip_run(words[2], words[5] == NULL ? "" : words[5]);
}
