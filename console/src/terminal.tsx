/** What a board prints, and a line to type to it. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { OpenBoard } from "./board/main.ts";
import { Input } from "./components.tsx";

/** Enough for some traces; a page that is left open for days grows no further. */
const MAX_LINES = 500;
/** A board without line ends. */
const MAX_COLUMNS = 2_000;
/** From the end, in pixels, at which new lines are followed. */
const NEAR_END = 24;

export const Terminal = (props: {
  board: OpenBoard;
  /** Called with each line, too. */
  heard?: (line: string) => void;
  /** Whether the board is lost, or does something else. */
  disabled: boolean;
}): JSX.Element => {
  const { board, heard, disabled } = props;
  const [lines, setLines] = useState<readonly string[]>([]);
  const [typed, setTyped] = useState("");
  const output = useRef<HTMLPreElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    let waiting: string[] = [];
    let frame = 0;
    const draw = () => {
      const more = waiting;
      waiting = [];
      frame = 0;
      setLines((before) => [...before, ...more].slice(-MAX_LINES));
    };
    const stop = board.listen((line) => {
      heard?.(line);
      waiting = [...waiting, line.slice(0, MAX_COLUMNS)].slice(-MAX_LINES);
      if (frame === 0) frame = requestAnimationFrame(draw);
    });
    return () => {
      cancelAnimationFrame(frame);
      stop();
    };
  }, [board]);
  useLayoutEffect(() => {
    const { current } = output;
    if (current !== null && follows.current) current.scrollTop = current.scrollHeight;
  }, [lines]);
  const onScroll = () => {
    const { scrollTop = 0, scrollHeight = 0, clientHeight = 0 } = output.current ?? {};
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END;
  };
  const submit = () => {
    follows.current = true;
    setTyped("");
    // A lost board says so itself.
    board.type(typed).catch(() => undefined);
  };
  return (
    <section aria-labelledby="terminal">
      <h2 id="terminal">Terminal</h2>
      <pre
        ref={output}
        class="terminal"
        tabIndex={0}
        role="log"
        aria-label="What the board prints"
        onScroll={onScroll}
      >
        {lines.join("\n")}
      </pre>
      <form onSubmit={submit}>
        <Input
          id="typed"
          label="Type to the board"
          autocapitalize="none"
          placeholder="process.memory().free"
          value={typed}
          disabled={disabled}
          set={setTyped}
        />
        <div class="buttons">
          <button type="submit" disabled={disabled}>
            Send
          </button>
          <button
            type="button"
            disabled={disabled}
            onClick={() => void board.interrupt().catch(() => undefined)}
          >
            Interrupt
          </button>
        </div>
      </form>
    </section>
  );
};
