import { describe, expect, it } from "vitest";
import { braceArrows, unexecutedArrows } from "./arrows.ts";

describe("an arrow with this", () => {
  it.each([
    ["in code that always executes", "f(()=>this.x);"],
    ["between braces", "if(a){f(()=>this.x)}"],
    ["in an arrow with braces", "f(()=>{g(()=>this.x)});"],
    ["inside a regular function", "if(a)f(()=>function(){return this});"],
    ["without this", "a&&f(()=>x);"],
  ])("is unchanged %s", (_where, code) => {
    expect(unexecutedArrows(code)).toEqual([]);
    expect(braceArrows(code)).toBe(code);
  });

  it.each([
    ["if(a)f(()=>this.x);else g();", "if(a){f(()=>this.x);}else g();"],
    ["if(a)g();else f(()=>this.x);", "if(a)g();else {f(()=>this.x);}"],
    ["while(a)f(()=>this.x);", "while(a){f(()=>this.x);}"],
    ["f(a=>g(()=>this.x));", "f(a=>{return g(()=>this.x)});"],
    ["f(a=>g(b=>h(()=>this.x)));", "f(a=>{return g(b=>{return h(()=>this.x)})});"],
    ["if(a)f(b=>g(()=>this.x));", "if(a){f(b=>{return g(()=>this.x)});}"],
  ])("is put in braces: %s", (code, braced) => {
    expect(braceArrows(code)).toBe(braced);
    expect(unexecutedArrows(braced)).toEqual([]);
  });

  it.each([["a?f(()=>this.x):g();"], ["a&&f(()=>this.x);"]])(
    "is reported where braces are impossible: %s",
    (code) => {
      expect(unexecutedArrows(code)).toHaveLength(1);
      expect(braceArrows(code)).toBe(code);
    },
  );
});
