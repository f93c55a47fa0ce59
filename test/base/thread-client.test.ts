// The client of threads and processes: numbered calls, deadlines, what a death means, and each rule of restart; then real threads and processes.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  processPeer,
  ThreadClient,
  threadPeer,
  type Death,
  type PeerEvents,
  type Restart,
} from "../../src/base/thread-client.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

type Told = { readonly no: number; readonly text: string };

/** Lives of a peer, the last one last. */
function rig(restart: Restart, more: { readonly asksAgain?: boolean } = {}) {
  const lives: { events: PeerEvents<string>; told: Told[]; ended: boolean }[] = [];
  const deaths: string[] = [];
  const client = new ThreadClient<Told, string, string>({
    ...more,
    restart,
    start: (events) => {
      const life = { events, told: new Array<Told>(), ended: false };
      lives.push(life);
      return {
        post: (message) => {
          if (message.text === "cannot be cloned") throw new TypeError("it cannot be cloned");
          life.told.push(message);
        },
        end: async () => {
          life.ended = true;
          events.gone({ reason: "was told to" });
        },
      };
    },
    onMessage: (text) => {
      const [, no = "", answer = ""] = /^(\d+) (.*)$/.exec(text) ?? [];
      if (answer === "no!") client.fail(Number(no), new Error("refused"));
      else client.answer(Number(no), answer);
    },
    onGone: ({ reason }) => deaths.push(reason),
  });
  const last = () => {
    const life = lives.at(-1);
    if (life === undefined) throw new Error("it was not started");
    return life;
  };
  const ask = async (text: string, deadlineMs?: number) =>
    client.ask((no) => ({ no, text }), deadlineMs === undefined ? {} : { deadlineMs });
  return { client, lives, deaths, last, ask };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("a call", () => {
  test("is answered by its number, in any order; answers to others are nobody's", async () => {
    const { client, ask, last } = rig("never");
    client.start();
    const [one, two] = [ask("a"), ask("b")];
    expect(client.waiting).toBe(2);
    expect(last().told.map(({ no }) => no)).toEqual([1, 2]);
    last().events.heard("2 second");
    last().events.heard("77 nobody's");
    last().events.heard("1 first");
    last().events.heard("1 again");
    expect(await one).toEqual({ kind: "answered", answer: "first" });
    expect(await two).toEqual({ kind: "answered", answer: "second" });
    expect(client.waiting).toBe(0);
  });

  test("rejects with what the far end refuses it for, and with what cannot be posted", async () => {
    const { client, ask, last } = rig("never");
    client.start();
    const refused = ask("a");
    last().events.heard("1 no!");
    await expect(refused).rejects.toThrow("refused");
    await expect(ask("cannot be cloned")).rejects.toThrow("it cannot be cloned");
    expect(client.waiting).toBe(0);
  });

  test("is late after its deadline, once; no timer outlives it", async () => {
    const { client, ask, last } = rig("never");
    client.start();
    const [late, quick, patient] = [ask("a", 500), ask("b", 500), ask("c")];
    last().events.heard("2 yes");
    expect(await quick).toEqual({ kind: "answered", answer: "yes" });
    await vi.advanceTimersByTimeAsync(499);
    expect(client.waiting).toBe(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(await late).toEqual({ kind: "late" });
    last().events.heard("1 too late");
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(86_400_000);
    expect(client.waiting).toBe(1);
    last().events.heard("3 at last");
    expect(await patient).toEqual({ kind: "answered", answer: "at last" });
  });

  test("without a number is the only one's", async () => {
    const { client, ask } = rig("never");
    client.start();
    const only = ask("a");
    client.answerOnly("x");
    client.answerOnly("nobody's");
    expect(await only).toEqual({ kind: "answered", answer: "x" });
  });
});

describe("a death", () => {
  test("answers what waits; `never`: what is asked afterwards, too", async () => {
    const { client, ask, last, lives, deaths } = rig("never");
    client.start();
    const waiting = ask("a", 500);
    last().events.gone({ reason: "ended with code 1: out of memory" });
    const gone = { kind: "gone", reason: "ended with code 1: out of memory" };
    expect(await waiting).toEqual(gone);
    expect(await ask("b")).toEqual(gone);
    await vi.advanceTimersByTimeAsync(86_400_000);
    expect([client.isRunning, lives.length, deaths.length]).toEqual([false, 1, 1]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("`when asked`: the next call starts it", async () => {
    const { client, ask, last, lives } = rig("when asked");
    void ask("a");
    last().events.gone({ reason: "ended" });
    expect(client.isRunning).toBe(false);
    const second = ask("b");
    expect(lives.length).toBe(2);
    last().events.heard("2 yes");
    expect(await second).toEqual({ kind: "answered", answer: "yes" });
  });

  test("`waitMs`: it is started again after a while, by how often it died since it was well", async () => {
    vi.useRealTimers();
    const deaths: number[] = [];
    const { client, last, lives } = rig({ waitMs: (count) => (deaths.push(count), 1) });
    client.start();
    const die = async (): Promise<void> => {
      const before = lives.length;
      last().events.gone({ reason: "ended" });
      expect(client.isRunning).toBe(false);
      await until("it runs again", () => lives.length === before + 1 && client.isRunning);
    };
    for (let time = 0; time < 3; time++) await die();
    client.isWell();
    await die();
    expect(deaths).toEqual([0, 1, 2, 0]);
  });

  test("with `asksAgain` keeps what waits for the next one, in its order and under its numbers", async () => {
    vi.useRealTimers();
    const { client, ask, last, lives } = rig({ waitMs: () => 1 }, { asksAgain: true });
    client.start();
    const answers = [ask("a"), ask("b"), ask("c")];
    last().events.heard("2 done");
    last().events.gone({ reason: "ended" });
    const meanwhile = ask("d");
    await until("it runs again", () => lives.length === 2);
    expect(last().told).toEqual([
      { no: 1, text: "a" },
      { no: 3, text: "c" },
      { no: 4, text: "d" },
    ]);
    for (const no of [1, 3, 4]) last().events.heard(`${no} yes`);
    for (const answer of [...answers, meanwhile])
      expect(await answer).toMatchObject({ kind: "answered" });
  });

  test("with `asksAgain` refuses what the next one cannot be posted, and asks it the rest", async () => {
    vi.useRealTimers();
    const { client, ask, last, lives } = rig({ waitMs: () => 1 }, { asksAgain: true });
    client.start();
    last().events.gone({ reason: "ended" });
    const [refused, other] = [ask("cannot be cloned"), ask("b")];
    await expect(refused).rejects.toThrow("it cannot be cloned");
    await until("it runs again", () => lives.length === 2);
    last().events.heard("2 yes");
    expect(await other).toEqual({ kind: "answered", answer: "yes" });
  });

  test("of one that was given up is told once, and what it still says is nobody's", async () => {
    const { client, ask, lives, deaths } = rig("when asked");
    const first = ask("a");
    const ended = client.end("did not answer in time");
    expect(await first).toEqual({ kind: "gone", reason: "did not answer in time" });
    await ended;
    const second = ask("b");
    lives[0]?.events.heard("2 of the dead");
    expect(client.waiting).toBe(1);
    lives[1]?.events.heard("2 of the living");
    expect(await second).toEqual({ kind: "answered", answer: "of the living" });
    expect(deaths).toEqual(["did not answer in time"]);
    expect(lives[0]?.ended).toBe(true);
  });
});

describe("closing", () => {
  test("starts nothing again, tells no death, and answers what waits", async () => {
    const { client, ask, last, lives, deaths } = rig({ waitMs: () => 50 }, { asksAgain: true });
    client.start();
    const waiting = ask("a");
    await client.close();
    expect(await waiting).toEqual({ kind: "gone", reason: "was told to" });
    expect(await ask("b")).toMatchObject({ kind: "gone" });
    client.start();
    await vi.advanceTimersByTimeAsync(1_000);
    expect([lives.length, last().ended, deaths.length]).toEqual([1, true, 0]);
  });

  test("gives it a while to end by itself", async () => {
    const { client, last } = rig("never");
    client.start();
    const closing = client.close({ no: 0, text: "close" }, 1_000);
    await vi.advanceTimersByTimeAsync(999);
    expect(last()).toMatchObject({ told: [{ no: 0, text: "close" }], ended: false });
    await vi.advanceTimersByTimeAsync(1);
    await closing;
    expect(last().ended).toBe(true);
  });

  test("begins with a last call, which a death answers that nobody is told of", async () => {
    const { client, ask, last, lives, deaths } = rig({ waitMs: () => 50 }, { asksAgain: true });
    client.start();
    client.retire();
    const [answered, unanswered] = [ask("close"), ask("never answered")];
    last().events.heard("1 closed");
    expect(await answered).toEqual({ kind: "answered", answer: "closed" });
    last().events.gone({ reason: "ended with code 0" });
    expect(await unanswered).toEqual({ kind: "gone", reason: "ended with code 0" });
    await client.close();
    await vi.advanceTimersByTimeAsync(1_000);
    expect([lives.length, deaths.length]).toEqual([1, 0]);
  });

  test("while it waits to be started again ends the wait, and what waits", async () => {
    const { client, ask, last, lives } = rig({ waitMs: () => 50_000 }, { asksAgain: true });
    client.start();
    last().events.gone({ reason: "ended" });
    const waiting = ask("a");
    await client.close();
    expect(await waiting).toEqual({ kind: "gone", reason: "was closed" });
    expect(lives.length).toBe(1);
  });
});

describe("real ones", () => {
  beforeEach(() => void vi.useRealTimers());

  const script = (dir: string, text: string): URL => {
    const path = join(dir, "peer.mjs");
    writeFileSync(path, text);
    return pathToFileURL(path);
  };

  async function live(
    start: ConstructorParameters<typeof ThreadClient<string, string, string>>[0]["start"],
    asked: readonly string[],
  ) {
    const deaths: Death[] = [];
    const client = new ThreadClient<string, string, string>({
      start,
      restart: "when asked",
      onMessage: (answer) => client.answerOnly(answer),
      onGone: (death) => deaths.push(death),
    });
    const answers: unknown[] = [];
    for (const text of asked) {
      const answer = await client.ask(() => text);
      answers.push(answer.kind === "answered" ? answer.answer : answer.kind);
    }
    await client.close();
    return { answers, deaths: deaths.map(({ reason, cause }) => [reason, cause?.message]) };
  }

  test("a thread answers, dies of what it throws, and is there again", async () => {
    using dir = tempDir();
    const entry = script(
      dir.path,
      `import { parentPort, workerData } from "node:worker_threads";
       parentPort.on("message", (text) => {
         if (text === "die") throw new RangeError("it was asked to");
         parentPort.postMessage(workerData + text);
       });`,
    );
    const start = threadPeer<string, string>(entry, { name: "x", workerData: "> ", heapMiB: 32 });
    expect(await live(start, ["a", "die", "b"])).toEqual({
      answers: ["> a", "gone", "> b"],
      deaths: [["ended with code 1: it was asked to", "it was asked to"]],
    });
  });

  test("a process answers, is killed, and is there again; one that cannot start is told", async () => {
    using dir = tempDir();
    const entry = script(
      dir.path,
      `process.on("message", ({ text }) => text === "die" ? process.kill(process.pid, "SIGKILL") : process.send("> " + text));`,
    );
    const { promise: heard, resolve } = Promise.withResolvers<string>();
    const start = processPeer<{ readonly text: string }, string>(entry, { niceness: 10 });
    const peer = start({ heard: resolve, gone: () => undefined });
    peer.post({ text: "a" }, []);
    expect(await heard).toBe("> a");
    await peer.end();
    const died = await new Promise<Death>((gone) => {
      start({ heard: () => undefined, gone }).post({ text: "die" }, []);
    });
    expect(died).toEqual({ reason: "ended: SIGKILL" });
    const missing = pathToFileURL(join(dir.path, "missing.mjs"));
    const none = await new Promise<Death>((gone) => {
      processPeer<{ readonly text: string }, string>(missing)({ heard: () => undefined, gone });
    });
    expect(none.reason).toBe("ended: 1");
  });

  test("a process that can no longer be reached is gone, and is killed", async () => {
    using dir = tempDir();
    const pidPath = join(dir.path, "pid");
    const entry = script(
      dir.path,
      `import { writeFileSync } from "node:fs";
       writeFileSync(${JSON.stringify(pidPath)}, String(process.pid));
       process.disconnect();
       setInterval(() => {}, 1_000);`,
    );
    let death: Death | undefined;
    const peer = processPeer<{ readonly text: string }, string>(entry)({
      heard: () => undefined,
      gone: (how) => (death = how),
    });
    await until("it cannot be reached", () => {
      peer.post({ text: "a" }, []);
      return death;
    });
    expect(death?.reason).toMatch(/^cannot be reached: /);
    const pid = Number(readFileSync(pidPath, "utf8"));
    await until("it is killed", () => {
      try {
        return !process.kill(pid, 0);
      } catch {
        return true;
      }
    });
  });
});
