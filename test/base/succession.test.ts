// The two ends of a hand-over: what a successor makes of what it hears, and of the end of the process before; and what it is told by its environment.

import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { isSuccessor, Succession, successorEnv } from "../../src/base/succession.ts";
import { heldNotify, type SdNotify } from "../../src/base/sd-notify.ts";

class Channel extends EventEmitter {
  readonly sent: unknown[] = [];
  connected = true;
  send = (message: unknown): void => void this.sent.push(message);
  disconnect = (): void => {
    this.connected = false;
    this.emit("disconnect");
  };
}

function open() {
  const channel = new Channel();
  const orphaned: string[] = [];
  const succession = new Succession(channel, () => orphaned.push("orphaned"));
  return { channel, succession, orphaned };
}

test("it says that it is ready, and is told to take over, and why a newer release did not", async () => {
  const { channel, succession } = open();
  const taken = succession.ready(new AbortController().signal);
  expect(channel.sent).toEqual([{ kind: "ready" }]);
  channel.emit("message", { kind: "take", because: "the successor crashed" });
  expect(await taken).toBe("the successor crashed");
  succession.serving();
  expect(channel.sent).toEqual([{ kind: "ready" }, { kind: "serving" }]);
});

test("records that come before anybody takes them wait, in their order", () => {
  const { channel, succession } = open();
  const taken: string[] = [];
  channel.emit("message", { kind: "record", line: "1" });
  channel.emit("message", { kind: "record", line: "2" });
  succession.followRecords((line) => taken.push(line));
  channel.emit("message", { kind: "record", line: "3" });
  expect(taken).toEqual(["1", "2", "3"]);
});

test("counts of unreviewed bots wait likewise", () => {
  const { channel, succession } = open();
  const counts = [
    { domain: "a.example", name: "curl", description: null, isFake: false, requests: 2 },
  ];
  const taken: unknown[] = [];
  channel.emit("message", { kind: "counts", counts });
  succession.followCounts((some) => taken.push(some));
  channel.emit("message", { kind: "counts", counts: [] });
  expect(taken).toEqual([counts, []]);
});

test("what has to be invalidated waits likewise, and is answered by its number", () => {
  const { channel, succession } = open();
  const [first, second] = [1, 2].map((no) => ({ kind: "invalidate", no, key: { path: `/${no}` } }));
  const taken: unknown[] = [];
  channel.emit("message", first);
  succession.followInvalidations(({ no, key }) => taken.push([no, key]));
  channel.emit("message", second);
  expect(taken).toEqual([
    [1, { path: "/1" }],
    [2, { path: "/2" }],
  ]);
  succession.invalidated(1);
  succession.invalidated(2, "EIO");
  expect(channel.sent).toEqual([
    { kind: "invalidated", no: 1, fault: undefined },
    { kind: "invalidated", no: 2, fault: "EIO" },
  ]);
});

test("a process before that ends without having given up its place leaves an orphan; one that has, does not", async () => {
  const orphan = open();
  const taken = orphan.succession.ready(new AbortController().signal);
  orphan.channel.disconnect();
  await expect(taken).rejects.toMatchObject({ code: "STOPPING" });
  expect(orphan.orphaned).toEqual(["orphaned"]);
  await orphan.succession.quiet;
  await orphan.succession.ended;

  const { channel, succession, orphaned } = open();
  channel.emit("message", { kind: "main" });
  await succession.main;
  channel.disconnect();
  expect(orphaned).toEqual([]);
  await succession.quiet;
  await succession.ended;
});

test("it says why it will not serve, but not to one that has left, or follows it no more", () => {
  const { channel, succession } = open();
  succession.failed("a port is taken");
  expect(channel.sent).toEqual([{ kind: "failed", reason: "a port is taken" }]);
  channel.emit("message", { kind: "main" });
  succession.failed("later");
  channel.disconnect();
  succession.failed("later still");
  expect(channel.sent).toHaveLength(1);
});

test("what a later release says and this one does not know is passed over", () => {
  const { channel, orphaned } = open();
  channel.emit("message", { kind: "weather", is: "fine" });
  expect({ sent: channel.sent, orphaned }).toEqual({ sent: [], orphaned: [] });
});

test("the environment of a successor has the sockets, and the number of nobody", () => {
  const before = { PATH: "/bin", LISTEN_PID: "7", LISTEN_FDS: "1", LISTEN_FDNAMES: "a" };
  const env = successorEnv(before, ["127.0.0.1_80", "127.0.0.1_443"]);
  const { ACCEL_SUCCEEDS: _, ...rest } = env;
  const sockets = { LISTEN_FDS: "2", LISTEN_FDNAMES: "127.0.0.1_80:127.0.0.1_443" };
  expect(rest).toEqual({ PATH: "/bin", ...sockets });
  expect([isSuccessor(before), isSuccessor(env)]).toEqual([false, true]);
});

test("what systemd would drop is held back until it hears this process, in its order", async () => {
  const heard: string[] = [];
  const notify: SdNotify = {
    watchdogMs: 5,
    send: async (...said) => void heard.push(...said),
    store: async (name, fd) => void heard.push(`${name} ${fd}`),
    forget: async (name) => void heard.push(`not ${name}`),
  };
  const main = Promise.withResolvers<void>();
  const held = heldNotify(notify, main.promise);
  expect(held.watchdogMs).toBe(5);
  await held.store("a", 7);
  await held.forget("b");
  await held.send("READY=1", "STATUS=x");
  expect(heard).toEqual([]);
  main.resolve();
  await main.promise;
  await held.send("WATCHDOG=1");
  expect(heard).toEqual(["a 7", "not b", "READY=1", "STATUS=x", "WATCHDOG=1"]);
});
