// A stop says what an AbortSignal says. Both are asked the same.

import { describe, expect, test } from "vitest";
import { signalOf, Stop, type StopSignal } from "../../src/base/stop.ts";

type Stopping = { readonly stop: StopSignal; readonly abort: (reason: Error) => void };

const kinds: readonly (readonly [name: string, make: () => Stopping])[] = [
  [
    "Stop",
    () => {
      const stop = new Stop();
      return { stop, abort: (reason) => stop.abort(reason) };
    },
  ],
  [
    "AbortSignal",
    () => {
      const controller = new AbortController();
      return { stop: controller.signal, abort: (reason) => controller.abort(reason) };
    },
  ],
];

describe.each(kinds)("%s", (_name, make) => {
  test("keeps its first reason", () => {
    const { stop, abort } = make();
    expect(stop.aborted).toBe(false);
    expect(stop.reason).toBeUndefined();
    stop.throwIfAborted();
    abort(new Error("first"));
    abort(new Error("second"));
    expect(stop.aborted).toBe(true);
    expect(stop.reason).toEqual(new Error("first"));
    expect(() => stop.throwIfAborted()).toThrow("first");
  });

  test("calls each listener once, in order, and none that was removed", () => {
    const { stop, abort } = make();
    const called: string[] = [];
    const listener = (name: string) => () => called.push(name);
    const [one, two, three, four] = ["one", "two", "three", "four"].map(listener);
    const remover = (): void => {
      called.push("remover");
      if (three !== undefined) stop.removeEventListener("abort", three);
    };
    for (const each of [one, two, one, remover, three, four])
      if (each !== undefined) stop.addEventListener("abort", each);
    if (two !== undefined) stop.removeEventListener("abort", two);
    abort(new Error("gone"));
    abort(new Error("again"));
    expect(called).toEqual(["one", "remover", "four"]);
  });

  test("does not call who comes after it has aborted", () => {
    const { stop, abort } = make();
    abort(new Error("gone"));
    let calls = 0;
    stop.addEventListener("abort", () => calls++);
    expect(calls).toBe(0);
  });

  test("has a signal that aborts with it, whenever it is asked for", () => {
    const before = make();
    const early = signalOf(before.stop);
    expect(early.aborted).toBe(false);
    expect(signalOf(before.stop)).toBe(early);
    before.abort(new Error("gone"));
    expect(early.reason).toEqual(new Error("gone"));
    const after = make();
    after.abort(new Error("gone"));
    expect(signalOf(after.stop).reason).toEqual(new Error("gone"));
  });
});
