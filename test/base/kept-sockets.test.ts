// Sockets that are passed as systemd passes them (sd_listen_fds(3)): by numbers from 3 on, to the process whose number is told.

import { spawnSync } from "node:child_process";
import { BoundSocket } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { KeptSockets } from "../../src/base/kept-sockets.ts";

const child = join(import.meta.dirname, "kept-sockets-child.ts");

type Found = {
  readonly taken: readonly (number | null)[];
  readonly forgotten: readonly string[];
  readonly inherited: readonly string[];
  readonly open: readonly boolean[];
};

type Address = { readonly host: string; readonly port: number };
const addressOf = (bound: BoundSocket): Address => {
  const address = bound.address();
  return typeof address === "object"
    ? { host: address.address, port: address.port }
    : { host: "", port: 0 };
};

function found(
  fds: readonly number[],
  names: string,
  wanted: readonly Address[],
  pid = "$$",
): Found {
  const run = `export LISTEN_PID=${pid} LISTEN_FDS=${fds.length} LISTEN_FDNAMES='${names}'; exec "$0" "$@"`;
  const { stdout, stderr } = spawnSync(
    "sh",
    ["-c", run, process.execPath, child, JSON.stringify(wanted)],
    { stdio: ["ignore", "pipe", "pipe", ...fds], encoding: "utf8" },
  );
  expect(stderr).toBe("");
  return JSON.parse(stdout) as Found;
}

test("each is found by its address, whatever it is called; the rest is closed and forgotten by its name", () => {
  using four = new BoundSocket({ host: "127.0.0.1", port: 0 });
  using six = new BoundSocket({ host: "::1", port: 0 });
  using old = new BoundSocket({ host: "127.0.0.1", port: 0 });
  const other = { host: "127.0.0.1", port: 1 };
  const long = { host: "0:0:0:0:0:0:0:1", port: addressOf(six).port };
  const wanted = [addressOf(four), long, other, addressOf(four)];
  expect(found([old.fd(), six.fd(), four.fd()], "old:six:http", wanted)).toEqual({
    taken: [5, 4, null, null],
    forgotten: ["old"],
    inherited: [],
    open: [false, true, true],
  });
});

test("what was passed to another process is nobody's here", () => {
  using four = new BoundSocket({ host: "127.0.0.1", port: 0 });
  expect(found([four.fd()], "http", [addressOf(four)], "1")).toMatchObject({
    taken: [null],
    forgotten: [],
  });
});

test("without systemd there is none", async () => {
  const refuse = (): never => {
    throw new Error("nothing was passed");
  };
  const calls = { addressOf: refuse, closeOnExec: refuse, beginHandshakes: refuse };
  const notify = { store: refuse, forget: refuse };
  const kept = new KeptSockets({ env: {}, pid: 1, calls, notify });
  expect(kept.take({ host: "127.0.0.1", port: 80 })).toBeUndefined();
  expect(await kept.closeRest()).toEqual([]);
  await kept.keep({ host: "127.0.0.1", port: 80 }, 7);
  expect(kept.holdsAny).toBe(false);
});

test("the name under which systemd keeps one has no colon, and is the one by which it is forgotten", async () => {
  const stored: unknown[] = [];
  const forgotten: string[] = [];
  const calls = {
    addressOf: () => undefined,
    closeOnExec: () => undefined,
    beginHandshakes: () => undefined,
  };
  const notify = {
    store: async (...given: unknown[]) => void stored.push(given),
    forget: async (name: string) => void forgotten.push(name),
  };
  const kept = new KeptSockets({ env: { NOTIFY_SOCKET: "/x" }, pid: 1, calls, notify });
  await kept.keep({ host: "::", port: 443 }, 7);
  await kept.keep({ host: "0.0.0.0", port: 80 }, 8);
  expect(stored).toEqual([
    ["[__]_443", 7],
    ["0.0.0.0_80", 8],
  ]);
  expect(kept.holdsAny).toBe(true);
  await kept.giveUp();
  expect(forgotten).toEqual(["[__]_443", "0.0.0.0_80"]);
});
