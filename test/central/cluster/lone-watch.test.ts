// A central that alone has no way to the store: what it goes by, when it sends its agents off, and when it does not.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import {
  centralAddress,
  createAskCentral,
  originOfCentral,
} from "../../../src/central/cluster/ask-central.ts";
import { LoneWatch } from "../../../src/central/cluster/lone-watch.ts";

const own = "00000000000000aa";
const other = "00000000000000bb";
const baseUrl = "https://central.example";
const direct = "http://10.0.0.12:8000";
type Said = "own" | "other works" | "other is away" | "nothing";

/** `said` is what is answered where; the test looks by hand. */
function started() {
  const clock = { nowMs: 100_000, beatMs: 100_000 };
  const said: Record<string, Said> = { [baseUrl]: "own", [direct]: "nothing" };
  const seen = { asked: new Array<string>(), told: new Array<boolean>() };
  const sent: AbortSignal[] = [];
  const watch = new LoneWatch({
    id: own,
    membership: {
      get sinceBeatMs() {
        return clock.nowMs - clock.beatMs;
      },
    },
    others: () => [direct],
    baseUrl,
    ask: async (origin) => {
      seen.asked.push(origin);
      const answer = said[origin];
      if (answer === "nothing" || answer === undefined) return undefined;
      if (answer === "own") return { central: own, works: true };
      return { central: other, works: answer === "other works" };
    },
    monotonicMs: () => clock.nowMs,
    log: silentLog(),
    onLone: (isLone) => seen.told.push(isLone),
    lookMs: 10 ** 9,
  });
  watch.onSendOff((stop) => sent.push(stop));
  const never = new AbortController().signal;
  const look = async (times = 1): Promise<void> => {
    for (let count = 0; count < times; count++) {
      clock.nowMs += 1_000;
      await watch.look(never);
    }
  };
  return { watch, clock, said, seen, sent, look };
}

/** Looks, of a central without a beat, before the one that knows. */
const sureLooks = 12;

test("nobody is asked while it beats, and it is not lone before 20 s without a beat", async () => {
  const { watch, clock, said, seen, look } = started();
  await using _ = watch;
  said[baseUrl] = "other works";
  clock.nowMs += 6_000;
  await look();
  expect([seen.asked, watch.isLone]).toEqual([[], false]);
  await look(12);
  expect([seen.asked.length, watch.isLone, seen.told]).toEqual([12, false, []]);
  await look();
  expect([watch.isLone, seen.told]).toEqual([true, [true]]);
});

test("behind an absence for all it is not lone where another one works first, however long the absence was, and is where it does not follow", async () => {
  const { watch, clock, said, seen, look } = started();
  await using _ = watch;
  said[baseUrl] = "other is away";
  said[direct] = "other is away";
  await look(90);
  said[baseUrl] = "other works";
  await look(sureLooks);
  expect([watch.isLone, seen.told]).toEqual([false, []]);
  clock.beatMs = clock.nowMs;
  await look(7);
  expect([watch.isLone, seen.told]).toEqual([false, []]);
  // Away for all again, and another one is the first again.
  said[baseUrl] = "other is away";
  await look(30);
  said[baseUrl] = "other works";
  await look(sureLooks);
  expect(seen.told).toEqual([]);
  await look();
  expect([watch.isLone, seen.told]).toEqual([true, [true]]);
});

test("what others said before they lost the store as well, or before a time in which it heard nothing, counts no more", async () => {
  for (const isBroken of [false, true]) {
    const { watch, clock, said, seen, look } = started();
    await using _ = watch;
    said[baseUrl] = "other works";
    clock.nowMs += 60_000;
    await look(sureLooks);
    if (isBroken) {
      said[baseUrl] = "other is away";
      await look();
      said[baseUrl] = "other works";
    } else clock.nowMs += 10_000; // It was frozen.
    await look(sureLooks);
    expect([isBroken, watch.isLone, seen.told]).toEqual([isBroken, false, []]);
    await look();
    expect([isBroken, watch.isLone]).toEqual([isBroken, true]);
  }
});

test("where the store is away for all, or nobody else answers, it is not lone, and sends nobody off", async () => {
  for (const answer of ["own", "other is away", "nothing"] as const) {
    const { watch, clock, said, seen, sent, look } = started();
    await using _ = watch;
    said[baseUrl] = answer;
    said[direct] = answer;
    clock.nowMs += 60_000;
    await look(30);
    expect([answer, watch.isLone, seen.told, sent]).toEqual([answer, false, [], []]);
  }
});

test("it asks the others themselves where the address of all leads to it, and sends nobody off before that leads to others five times in a row", async () => {
  const { watch, clock, said, seen, sent, look } = started();
  await using _ = watch;
  said[direct] = "other works";
  clock.nowMs += 60_000;
  await look(30);
  expect([watch.isLone, sent.length]).toEqual([true, 0]);
  said[baseUrl] = "other works";
  await look(4);
  said[baseUrl] = "own";
  await look();
  said[baseUrl] = "other works";
  await look(4);
  expect(sent.length).toBe(0);
  await look();
  expect([sent.length, sent[0]?.aborted]).toEqual([1, false]);
  await look(10);
  expect([sent.length, seen.told]).toEqual([1, [true]]);
});

test("who is being sent off is not any more once the address of all leads back to it, the store is back, or the others lost it as well", async () => {
  const ends: readonly ((rig: ReturnType<typeof started>) => void)[] = [
    ({ said }) => (said[baseUrl] = "own"),
    ({ clock }) => (clock.beatMs = clock.nowMs + 1_000),
    ({ said }) => {
      said[baseUrl] = "other is away";
      said[direct] = "other is away";
    },
  ];
  for (const end of ends) {
    const rig = started();
    await using _ = rig.watch;
    rig.said[baseUrl] = "other works";
    rig.clock.nowMs += 60_000;
    await rig.look(sureLooks + 5);
    expect(rig.sent[0]?.aborted).toBe(false);
    end(rig);
    await rig.look();
    expect(rig.sent.map(({ aborted }) => aborted)).toEqual([true]);
  }
});

test("it is no longer lone at the first beat, and six seconds after the last word of another", async () => {
  const { watch, clock, said, seen, look } = started();
  await using _ = watch;
  said[baseUrl] = "other works";
  clock.nowMs += 60_000;
  await look(sureLooks + 1);
  said[baseUrl] = "own";
  await look(5);
  expect(watch.isLone).toBe(true);
  await look();
  expect([watch.isLone, seen.told]).toEqual([false, [true, false]]);
  said[baseUrl] = "other works";
  await look(sureLooks + 1);
  clock.beatMs = clock.nowMs;
  expect(watch.isLone).toBe(false);
  await look();
  expect(seen.told).toEqual([true, false, true, false]);
});

test.each([
  ["10.0.0.12:8000", "two", "http://10.0.0.12:8000"],
  ["[fd00::2]:8000", "two", "http://[fd00::2]:8000"],
  ["0.0.0.0:8000", "two", "http://two:8000"],
  ["[::]:8000", "two", "http://two:8000"],
  ["127.0.0.1:8000", "two", undefined],
  ["127.0.0.1:8000", "one", "http://127.0.0.1:8000"],
  ["localhost:8000", "two", undefined],
])("one that listens at %s on the host %s is asked at %s", (listen, hostName, origin) => {
  expect(originOfCentral(centralAddress(hostName, listen), "one")).toBe(origin);
});

test("an address that says nothing of the kind leads nowhere", () => {
  expect(originOfCentral("", "one")).toBeUndefined();
  expect(originOfCentral("two", "one")).toBeUndefined();
});

test("the answer is read from a server, and what is none of a central is nothing", async () => {
  const answers: Record<string, readonly [number, string]> = {
    "/agent-api/v1/central": [200, JSON.stringify({ central: other, works: true })],
    "/away/agent-api/v1/central": [503, JSON.stringify({ central: other, works: true })],
    "/page/agent-api/v1/central": [200, "<html>"],
    "/large/agent-api/v1/central": [200, " ".repeat(5_000)],
    "/else/agent-api/v1/central": [200, JSON.stringify({ central: "x", works: true })],
  };
  const server = createServer((request, response) => {
    const [status, body] = answers[request.url ?? ""] ?? [404, ""];
    response.writeHead(status).end(body);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as AddressInfo; // It listens on TCP.
  const ask = createAskCentral(() => undefined);
  const stop = new AbortController();
  const at = async (path: string) => ask(`http://127.0.0.1:${port}${path}`, stop.signal);
  try {
    expect(await at("")).toEqual({ central: other, works: true });
    for (const path of ["/away", "/page", "/large", "/else", "/none"])
      expect([path, await at(path)]).toEqual([path, undefined]);
  } finally {
    server.close();
    server.closeAllConnections();
  }
  expect(await at("")).toBeUndefined();
});
