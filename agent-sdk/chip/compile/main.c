/* Compiles a module of JavaScript to XS's byte code, with XS's own parser, on the host:
   SOURCE -> standard output: sizes and contents of names and code, as bake.c reads them. */
#include "xsScript.h"

/* What the parser asks of a machine that runs programs: there is none here. */
void fxGenerateTag(void *console, txString buffer, txInteger size, txString path) { buffer[0] = 0; }
txID fxGenerateProfileID(void *console) { return 0; }
void fxVReportWarning(void *console, txString path, txInteger line, txString format, c_va_list arguments) {}
void fxVReportError(void *console, txString path, txInteger line, txString format, c_va_list arguments) {
  fprintf(stderr, "%s:%d: ", path, (int)line);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
}

static void part(const void *bytes, txU4 size) {
  fwrite(&size, 4, 1, stdout);
  fwrite(bytes, 1, size, stdout);
}

int main(int count, char **words) {
  static txParser parser;
  txParserJump jump;
  txString name = NULL;
  txScript *script = NULL;
  FILE *file = count == 2 ? fopen(words[1], "r") : NULL;
  if (file == NULL) return 2;
  fxInitializeParser(&parser, NULL, 1024 * 1024, 1993);
  parser.firstJump = &jump;
  if (c_setjmp(jump.jmp_buf) == 0) {
    parser.path = fxNewParserSymbol(&parser, words[1]);
    fxParserTree(&parser, file, (txGetter)fgetc, 0, &name);
    fxParserHoist(&parser);
    fxParserBind(&parser);
    script = fxParserCode(&parser);
  }
  if (script == NULL) return 1;
  part(script->symbolsBuffer, (txU4)script->symbolsSize);
  part(script->codeBuffer, (txU4)script->codeSize);
  return 0;
}
