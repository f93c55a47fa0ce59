// Central killed in the middle of an upload, again and again: no version is served that is not whole, and nothing of what was cut off stays.

import { createHash, randomBytes } from "node:crypto";
import { readdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { hashPassword } from "../../src/central/api/password.ts";
import { openStore } from "../../src/central/store/engine/database.ts";
import { call } from "../support/central-whole.ts";
import { freePorts } from "../support/free-ports.ts";
import { Program } from "../support/process.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";
import { basic, form, formHeaders, wheel, wheelName } from "../support/wheels.ts";

const credentials = basic("publisher", "correct horse");

function requestBytes(version: string, content: Buffer): Buffer {
  const body = form([{ name: "file", fileName: wheelName(version), content }]);
  const head = [
    `POST /presentation-api/v1/upload/accel_pack/${version}/ HTTP/1.1`,
    "host: x",
    `authorization: ${credentials.authorization}`,
    `content-type: ${formHeaders["content-type"]}`,
    `content-length: ${body.length}`,
    "connection: close",
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]);
}

/** What was answered until the connection ended, by whatever. */
async function sendPart(port: number, bytes: Buffer, kill?: () => Promise<void>): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  const { promise, resolve } = Promise.withResolvers<void>();
  let answer = "";
  socket.on("data", (chunk: Buffer) => (answer += chunk.toString("latin1")));
  socket.on("error", () => undefined);
  socket.once("close", () => resolve());
  socket.write(bytes);
  await kill?.();
  await promise;
  return answer;
}

test("an upload that was cut off by a kill leaves nothing; one that was answered stays", async () => {
  using dir = tempDir();
  const [port = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const config = join(dir.path, "central.yaml");
  writeFileSync(config, `listen: 127.0.0.1:${port}\nstate_dir: ${dir.path}/state\n`);
  const ready = async (): Promise<boolean> =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await using central = await Program.start(["central", "serve", "--config", config], ready);
  const trial = await call(url, "POST", "/trial/", undefined, { username: "publisher" });
  const token = String(trial["token"]);
  await central.kill();
  {
    await using store = await openStore(join(dir.path, "state/central.db"), () => new Date());
    const password_hash = await hashPassword("correct horse", randomBytes);
    await store.updateTable("users").set({ password_hash, may_publish: 1 }).execute();
  }
  await central.restart();

  const packages = join(dir.path, "state/packages");
  const files = (): readonly string[] =>
    readdirSync(packages, { recursive: true, encoding: "utf8" }).filter((name) => name !== "tmp");
  const content = wheel("1.0", 3_000_000);
  const whole = requestBytes("1.0", content);
  const answered: string[] = [];
  for (const share of [0.5, 0.9999, 1]) {
    const before = files().length;
    const answer = await sendPart(
      port,
      whole.subarray(0, Math.floor(whole.length * share)),
      async () => {
        await until("it is being received", () => files().length > before || answered.length > 0);
        await central.kill();
      },
    );
    if (answer.startsWith("HTTP/1.1 201")) answered.push(answer);
    await central.restart();
    const latest = await fetch(`${url}/presentation-api/v1/download/accel_pack/`, {
      headers: { authorization: `Token ${token}` },
    });
    if (share < 1)
      expect({ share, status: latest.status, files: files() }).toEqual({
        share,
        status: 404,
        files: [],
      });
    // Of the last one both are right, whole: the kill came before its commit or after it.
    else if (answered.length > 0) expect(latest.status).toBe(200);
    expect(files()).toHaveLength(latest.status === 200 ? 1 : 0);
  }
  if (files().length === 0) expect(await sendPart(port, whole)).toMatch(/^HTTP\/1\.1 201 /);
  expect(await sendPart(port, whole)).toMatch(/^HTTP\/1\.1 409 /);
  await central.kill();
  await central.restart();
  const latest = await call(url, "GET", "/download/accel_pack/", token);
  const sha256 = createHash("sha256").update(content).digest("hex");
  expect(latest).toMatchObject({ version: "1.0", size: content.length, sha256 });
  const place = new URL(String(latest["download_url"])).pathname;
  const got = await fetch(`${url}${place}`, { headers: { authorization: `Token ${token}` } });
  expect(Buffer.from(await got.arrayBuffer()).equals(content)).toBe(true);
}, 400_000);
