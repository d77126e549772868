/** The conformance runner of protocol/src/testing in the real XS engine. */
import { answerCrypt } from "../engines/xs-crypt.ts";
import { XsWorker } from "../engines/xs-worker.ts";

export class XsConformance {
  private readonly worker: XsWorker;

  /** `script`: the result of vectorsScript. */
  constructor(engine: string, script: string) {
    this.worker = new XsWorker({
      engine,
      maxCompute: 1e9,
      maxMemoryKiB: 131072,
      answer: (asked) => Buffer.from(JSON.stringify(answerCrypt(JSON.parse(asked.toString())))),
    });
    this.worker.evaluate(script);
  }

  /** A sentence for each failure in one file of protocol/vectors. `native`: with native crypto. */
  check(field: string, text: string, native = true): string[] {
    const command = { op: "vectors", field, text, native };
    return JSON.parse(this.worker.command(Buffer.from(JSON.stringify(command))).reply.toString());
  }

  close(): Promise<void> {
    return this.worker.close();
  }
}
