// A program that systemd has passed sockets to: it says what it finds, as JSON.

import { spawnSync } from "node:child_process";
import { createSdNotify } from "../../src/base/sd-notify.ts";
import { KeptSockets } from "../../src/base/kept-sockets.ts";
import { SocketCalls } from "../../src/base/socket-calls.ts";

const calls = new SocketCalls();
const wanted = JSON.parse(process.argv[2] ?? "[]") as { host: string; port: number }[];
const forgotten: string[] = [];
const notify = { ...createSdNotify({}), forget: async (name: string) => void forgotten.push(name) };
const kept = new KeptSockets({
  env: process.env,
  pid: process.pid,
  calls,
  notify,
});
const taken = wanted.map((address) => kept.take(address));
await kept.closeRest();
const { stdout } = spawnSync("ls", ["/proc/self/fd"], { encoding: "utf8" });
const inherited = stdout.split("\n").filter((fd) => taken.includes(Number(fd)) && fd !== "");
const open = [3, 4, 5].map((fd) => calls.addressOf(fd) !== undefined);
process.stdout.write(JSON.stringify({ taken, forgotten, inherited, open }));
