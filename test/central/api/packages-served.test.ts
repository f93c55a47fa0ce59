// Accelerator packages that were uploaded: what is told of them and served, which is the newest, and what happens to the same one again.

import { createHash } from "node:crypto";
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { form, formHeaders, wheel, wheelName } from "../../support/wheels.ts";
import { member } from "./api-harness.ts";
import { PackageRig, password, publisher } from "./package-rig.ts";

let rig: PackageRig;
beforeAll(async () => {
  rig = await PackageRig.open();
});
afterAll(async () => rig[Symbol.asyncDispose]());

describe("uploaded packages", () => {
  test("are told, served with their digest, and are not replaced", async () => {
    const reply = await rig.upload("0.9.0");
    const bytes = wheel("0.9.0", 2_000);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const facts = { version: "0.9.0", file: wheelName("0.9.0"), size: bytes.length, sha256 };
    expect(reply).toMatchObject({ status: 201 });
    expect(reply.body).toEqual({ ...facts, when_created: rig.api.clock.toISOString() });
    const latest = await rig.api.call("GET", "/download/accel_pack/", { token: rig.token });
    const place = `/presentation-api/v1/download/accel_pack/0.9.0/${facts.file}`;
    expect(latest.body).toEqual({
      ...facts,
      download_url: `https://central.example.com${place}`,
    });
    const got = await fetch(`http://127.0.0.1:${rig.api.port}${place}`, {
      headers: { authorization: `Token ${rig.token}` },
    });
    expect(Buffer.from(await got.arrayBuffer()).equals(bytes)).toBe(true);
    expect(got.headers.get("content-type")).toBe("application/octet-stream");
    expect(got.headers.get("repr-digest")).toBe(
      `sha-256=:${Buffer.from(sha256, "hex").toString("base64")}:`,
    );
    const head = await rig.api.call("HEAD", place, { token: rig.token });
    expect(head).toMatchObject({ status: 200, body: undefined });
    expect(head.headers["content-length"]).toBe(String(bytes.length));
    expect((await rig.api.call("GET", place)).status).toBe(401);
    for (const other of ["0.9.1", "latest", "..%2F..%2Fcentral.db"])
      expect(
        (await rig.api.call("GET", place.replace("0.9.0", other), { token: rig.token })).status,
      ).toBe(404);
    expect((await rig.api.call("GET", `${place}x`, { token: rig.token })).status).toBe(404);

    expect((await rig.upload("0.9.0")).status).toBe(409);
    const spelled = [{ name: "file", fileName: wheelName("0.9"), content: wheel("0.9") }];
    expect((await rig.send("v0.9", spelled)).status).toBe(409);
    expect(rig.files()).toHaveLength(1);
  });

  test("the newest is the highest version, not the last one", async () => {
    for (const version of ["0.10.0", "0.10.1.dev3", "0.2.0"])
      expect((await rig.upload(version)).status).toBe(201);
    const latest = await rig.api.call("GET", "/download/accel_pack/", { token: rig.token });
    expect(latest.body).toMatchObject({ version: "0.10.1.dev3" });
    const info = await rig.api.call("GET", "/upload/accel_pack_v2/", { token: rig.token });
    expect(info.body).toMatchObject({
      versions: { accel_pack: "0.10.1.dev3", bootstrapper: "1.4.0", base_python: "3.13.1" },
    });
  });

  test("of two uploads of one version at once one is there", async () => {
    const before = rig.files().length;
    const replies = await Promise.all(["1.0", "1.0", "1.0"].map(async (one) => rig.upload(one)));
    expect(replies.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409, 409]);
    expect(rig.files()).toHaveLength(before + 1);
  });

  test("a repeated upload with its key is answered as the first one, another file with it is a conflict", async () => {
    const key = { "idempotency-key": "one upload" };
    expect((await rig.upload("1.1", { "idempotency-key": "with blank s\t" })).status).toBe(400);
    const once = { ...key, "idempotency-key": "one-upload" };
    const first = await rig.upload("1.1", once);
    const count = rig.files().length;
    const again = await rig.upload("1.1", once);
    expect(again).toMatchObject({ status: 201, body: Object(first.body) });
    expect(again.headers["idempotency-replayed"]).toBe("true");
    const other = [{ name: "file", fileName: wheelName("1.1"), content: wheel("1.1", 3_000) }];
    expect((await rig.send("1.1", other, { ...publisher, ...once })).status).toBe(409);
    expect(rig.files()).toHaveLength(count);
  });

  test("a form in many small pieces, with a text before and after it", async () => {
    const version = "1.2";
    const bytes = Buffer.concat([
      Buffer.from("read this with something newer\r\n"),
      form([{ name: "file", fileName: wheelName(version), content: wheel(version, 3_000) }]),
      Buffer.from("the end"),
    ]);
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const sender = request(
      {
        port: rig.api.port,
        method: "POST",
        path: `/presentation-api/v1/upload/accel_pack/${version}/`,
        headers: { ...formHeaders, ...publisher },
      },
      (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      },
    );
    sender.on("error", reject);
    for (let at = 0; at < bytes.length; at += 37) sender.write(bytes.subarray(at, at + 37));
    sender.end();
    expect(await promise).toBe(201);
  });

  test("an upload is in the audit trail, without the password", async () => {
    const lines = await rig.api.store
      .selectFrom("audit")
      .selectAll()
      .where("action", "=", "POST /upload/accel_pack/:version/")
      .execute();
    expect(lines.map(({ ids }) => member(JSON.parse(ids), "version"))).toEqual(await rig.names());
    expect(lines[0]).toMatchObject({ who: "publisher", via: "api", address: "127.0.0.1" });
    expect(JSON.stringify(lines)).not.toContain(password);
  });
});
