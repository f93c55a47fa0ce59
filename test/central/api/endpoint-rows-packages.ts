// Rows of the specification's endpoint tables: the accelerator package.

import { expect } from "vitest";
import { basic, form, formHeaders, wheel, wheelName } from "../../support/wheels.ts";
import type { Row, Scene } from "./row-scene.ts";

/** Uploaded by a user who may publish, with name and password. */
async function publish(scene: Scene): Promise<void> {
  const path = `/user-profile/${scene.slot("pk")}/`;
  await scene.gives(["PUT", path, { password: "correct horse" }], 200);
  await scene.api.store
    .updateTable("users")
    .set({ may_publish: 1 })
    .where("username", "=", scene.world.username)
    .execute();
  const content = wheel("1.5.0", 1_000);
  const reply = await scene.api.call("POST", "/upload/accel_pack/1.5.0/", {
    raw: form([{ name: "file", fileName: wheelName("1.5.0"), content }]),
    headers: { ...formHeaders, ...basic(scene.world.username, "correct horse") },
  });
  expect(reply).toMatchObject({
    status: 201,
    body: { version: "1.5.0", file: wheelName("1.5.0"), sha256: expect.any(String) },
  });
}

export const packageRows: readonly Row[] = [
  {
    isAlone: true,
    line: "GET /download/accel_pack/",
    fact: "200: the newest version, and where it is; 404 before there is one",
    run: async (scene) => {
      await scene.gives(["GET", "/download/accel_pack/"], 404);
      await publish(scene);
      const where = { version: "1.5.0", download_url: expect.stringContaining("/1.5.0/") };
      await scene.gives(["GET", "/download/accel_pack/"], 200, where);
    },
  },
  {
    isAlone: true,
    line: "GET /upload/accel_pack_v2/",
    fact: "200: bootstrapper_download_url, versions, images",
    run: async (scene) => {
      await publish(scene);
      await scene.gives(["GET", "/upload/accel_pack_v2/"], 200, {
        bootstrapper_download_url: "https://downloads.example.com/bootstrapper.sh",
        versions: { bootstrapper: "1.4.0", base_python: "3.13.1", accel_pack: "1.5.0" },
        images: { accelerator: "registry.example.com/accelerator:1.4.0" },
      });
    },
  },
  {
    isAlone: true,
    line: "POST /upload/accel_pack/{version}/",
    fact: "201: a version",
    run: publish,
  },
];
