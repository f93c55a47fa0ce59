// Uploads of accelerator packages: who may, and what is refused and leaves nothing behind.

import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import {
  basic,
  boundary,
  form,
  formHeaders,
  wheel,
  wheelName,
  type FormFile,
} from "../../support/wheels.ts";
import { PackageRig, password, publisher } from "./package-rig.ts";

let rig: PackageRig;
beforeAll(async () => {
  rig = await PackageRig.open();
});
afterAll(async () => rig[Symbol.asyncDispose]());

describe("before there is a package", () => {
  test("the newest is a 404, the versions are those of the settings", async () => {
    expect((await rig.api.call("GET", "/download/accel_pack/", { token: rig.token })).status).toBe(
      404,
    );
    // A body on a GET, as the specification has it.
    const headers = { "content-length": "2" };
    expect(
      await rig.api.call("GET", "/upload/accel_pack_v2/", {
        token: rig.token,
        body: {},
        headers,
      }),
    ).toMatchObject({
      status: 200,
      body: {
        bootstrapper_download_url: "https://downloads.example.com/bootstrapper.sh",
        versions: { bootstrapper: "1.4.0", base_python: "3.13.1" },
      },
    });
  });
});

describe("credentials", () => {
  const part = { name: "file", fileName: wheelName("0.1"), content: wheel("0.1") };
  test.each([
    ["none", {}, 401],
    ["a token", { authorization: "Token of-nobody" }, 401],
    ["a wrong password", basic("publisher", "correct hors"), 401],
    ["an unknown name", basic("nobody", password), 401],
    ["a user without a password", basic("guest", password), 401],
    ["an empty password", basic("guest", ""), 401],
    ["no name", basic("", password), 401],
    ["no colon", { authorization: "Basic cHVibGlzaGVy" }, 401],
    ["a user who may not publish", basic("reader", password), 403],
  ])("%s", async (_what, headers, status) => {
    const reply = await rig.send("0.1", [part], headers);
    expect(reply.status).toBe(status);
    expect(reply.body).toMatchObject({ status });
    expect(reply.headers["www-authenticate"]?.slice(0, 12)).toBe(
      status === 401 ? "Basic realm=" : undefined,
    );
    expect(rig.files()).toEqual([]);
  });

  test("a password opens nothing but the upload", async () => {
    const reply = await rig.api.call("GET", "/download/accel_pack/", { headers: publisher });
    expect(reply.status).toBe(401);
  });

  test("wrong passwords of a name are limited; who was right from its address goes on", async () => {
    const from = (address: string, words: string) =>
      rig.send("0.1", [], { ...basic("reader", words), "x-forwarded-for": address });
    expect((await from("192.0.2.7", password)).status).toBe(403);
    const statuses = new Set<number>();
    for (let n = 0; n < 25; n++) statuses.add((await from(`198.51.100.${n}`, `guess ${n}`)).status);
    expect([...statuses]).toEqual([401, 429]);
    const refused = await from("203.0.113.9", password);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    expect((await from("192.0.2.7", password)).status).toBe(403);
    // But who shares its address may not guess without end.
    const shared = [await from("192.0.2.7", "guess one"), await from("192.0.2.7", "guess two")];
    expect(shared.map(({ status }) => status)).toEqual([401, 429]);
    const other = { ...publisher, "x-forwarded-for": "203.0.113.9" };
    expect((await rig.send("0.1", [], other)).status).toBe(400);
  });
});

describe("refused uploads leave nothing", () => {
  const file = (given: Partial<FormFile> = {}): FormFile => ({
    name: "file",
    fileName: wheelName("0.3"),
    content: wheel("0.3"),
    ...given,
  });
  test.each<readonly [string, string, readonly FormFile[], number, string]>([
    ["a path that is no version", "latest", [file()], 400, "version"],
    ["no part", "0.3", [], 400, "/file"],
    ["another part", "0.3", [file({ name: "wheel" })], 400, "/wheel"],
    ["a part beside it", "0.3", [file(), file({ name: "comment" })], 400, "/comment"],
    ["the part twice", "0.3", [file(), file()], 400, "/file"],
    ["no file name", "0.3", [{ name: "file", content: wheel("0.3") }], 400, "/file"],
    ["a name that is no wheel's", "0.3", [file({ fileName: "x.zip" })], 400, "/file"],
    ["no wheel", "0.3", [file({ content: "text" })], 400, "/file"],
    ["another version by its name", "0.3", [file({ fileName: wheelName("0.4") })], 400, "/file"],
    ["another version in the path", "0.4", [file({ fileName: wheelName("0.3") })], 400, "/file"],
  ])("%s", async (_what, version, parts, status, path) => {
    const reply = await rig.send(version, parts);
    expect(reply).toMatchObject({ status, body: { errors: [{ path }] } });
    expect(rig.files()).toEqual([]);
  });

  test.each([
    ["JSON", "application/json", "{}", 415],
    ["a form without boundary", "multipart/form-data", "x", 415],
    ["a form that is none", `multipart/form-data; boundary=${boundary}`, "nothing", 400],
    [
      "a form that ends early",
      `multipart/form-data; boundary=${boundary}`,
      form([file()]).subarray(0, 200),
      400,
    ],
    [
      "a part without name",
      `multipart/form-data; boundary=${boundary}`,
      `--${boundary}\r\n\r\nx\r\n--${boundary}--\r\n`,
      400,
    ],
    [
      "a head without end",
      `multipart/form-data; boundary=${boundary}`,
      `--${boundary}\r\nx: ${"y".repeat(100_000)}`,
      400,
    ],
  ])("%s", async (_what, type, raw, status) => {
    const headers = { ...publisher, "content-type": type };
    const reply = await rig.api.call("POST", "/upload/accel_pack/0.3/", { raw, headers });
    expect(reply.status).toBe(status);
    expect(rig.files()).toEqual([]);
  });

  test("a wheel that is too large, told by its length or found out on the way", async () => {
    const content = wheel("0.3", 500_000);
    expect((await rig.send("0.3", [file({ content })])).status).toBe(413);
    const headers = { ...publisher, "transfer-encoding": "chunked" };
    expect((await rig.send("0.3", [file({ content })], headers)).status).toBe(413);
    expect(rig.files()).toEqual([]);
  });

  test("an upload whose sender goes away", async () => {
    const body = form([file({ content: wheel("0.3", 100_000) })]);
    const sender = request({
      port: rig.api.port,
      method: "POST",
      path: "/presentation-api/v1/upload/accel_pack/0.3/",
      headers: { ...formHeaders, ...publisher, "content-length": body.length },
    });
    sender.on("error", () => undefined);
    sender.write(body.subarray(0, 50_000));
    await until("it is being received", () => rig.files().length === 1);
    sender.destroy();
    await until("what was received is gone", () => rig.files().length === 0);
    expect(await rig.names()).toEqual([]);
  });
});
