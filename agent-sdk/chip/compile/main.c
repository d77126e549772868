/* Compiles a module of JavaScript to XS's byte code, with XS's own parser, on the host:
   SOURCE -> standard output, in the form of code.h. */
#include "xsScript.h"
#include "code.h"
#include "engine.h"

/* What the parser asks of a machine that runs programs: there is none here. */
void fxGenerateTag(void *console, txString buffer, txInteger size, txString path) { buffer[0] = 0; }
txID fxGenerateProfileID(void *console) { return 0; }
void fxVReportWarning(void *console, txString path, txInteger line, txString format, c_va_list arguments) {}
void fxVReportError(void *console, txString path, txInteger line, txString format, c_va_list arguments) {
  fprintf(stderr, "%s:%d: ", path, (int)line);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
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
  const chip_code head = {CHIP_CODE_MAGIC, CHIP_ENGINE, (txU4)script->symbolsSize, (txU4)script->codeSize};
  fwrite(&head, sizeof head, 1, stdout);
  fwrite(script->symbolsBuffer, 1, head.names, stdout);
  fwrite(script->codeBuffer, 1, head.code, stdout);
  return 0;
}
