// SIGTERM: what is in flight is answered, a connection that drips or hangs does not hold central, and it ends with 0.

import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePorts } from "../support/free-ports.ts";
import { Program } from "../support/process.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

test("a request that is under way is answered as the last of its connection; one that hangs is told to come again", async () => {
  using dir = tempDir();
  const [port = 0] = await freePorts(1);
  const config = join(dir.path, "central.yaml");
  writeFileSync(config, `listen: 127.0.0.1:${port}\nstate_dir: ${dir.path}/state\n`);
  const ready = async (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await using central = await Program.start(["central", "serve", "--config", config], ready);

  const body = JSON.stringify({ username: "late" });
  const head = `POST /presentation-api/v1/trial/ HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: ${body.length}\r\n\r\n`;
  const isRead = "HTTP/1.1 100 Continue\r\n\r\n";
  const open = async (sent: string) => {
    const socket = connect(port, "127.0.0.1").setEncoding("utf8");
    const said = { answer: "", closed: false };
    socket.on("data", (chunk: string) => (said.answer += chunk));
    socket.on("error", () => undefined);
    socket.on("close", () => (said.closed = true));
    await once(socket, "connect");
    socket.write(sent);
    return { socket, said };
  };
  const idle = await open("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
  await until("kept alive", () => idle.said.answer.includes("alive"));
  const late = await open(head + body.slice(0, 5));
  const hanging = await open(head + body.slice(0, 5));
  const silent = await open("");
  // Before, they are connections on which nothing was asked.
  await until("both are under way", () =>
    [late, hanging].every(({ said }) => said.answer === isRead),
  );

  const beganMs = performance.now();
  process.kill(central.pid, "SIGTERM");
  await until("it stops", () => central.said.includes('"stopping"'));
  late.socket.write(body.slice(5));
  await until("answered", () => late.said.closed);
  expect(late.said.answer.slice(isRead.length)).toMatch(/^HTTP\/1\.1 201 Created\r\n/);
  expect(late.said.answer.toLowerCase()).toContain("\r\nconnection: close\r\n");
  expect(await central.exited()).toBe(0);
  expect(performance.now() - beganMs).toBeLessThan(30_000);
  await until("closed", () => hanging.said.closed && silent.said.closed && idle.said.closed);
  expect(hanging.said.answer.slice(isRead.length)).toMatch(
    /^HTTP\/1\.1 503 .*retry-after: 5\r\n/is,
  );
}, 180_000);
