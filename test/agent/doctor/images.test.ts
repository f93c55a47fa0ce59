// What doctor says of the encoder of pictures.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { EncoderSeen, Finding, Host } from "../../../src/agent/doctor/finding.ts";
import { checkImages } from "../../../src/agent/doctor/images.ts";
import { agentFields } from "../../../src/agent/settings/fields.ts";
import { agentProgram, placeOf } from "../../../src/base/instance.ts";
import { loadSettings } from "../../../src/base/settings-file.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { answering } from "./agent-seen.ts";

async function found(encoder: EncoderSeen, isMissed: boolean, isOn = true): Promise<Finding> {
  using dir = tempDir();
  const config = join(dir.path, "agent.yaml");
  const text = `central_url: https://central.example\nname16: '0123456789abcdef'\nimages: {encoder: ${isOn}}\n`;
  writeFileSync(config, text);
  const host: Host = {
    config,
    place: placeOf(agentProgram),
    uid: 0,
    read: () => undefined,
    unit: async () => undefined,
    others: () => [],
    agent: async () => ({ ...answering, isEncoderMissed: isMissed }),
    installer: () => undefined,
    encoder: async () => encoder,
  };
  return checkImages(loadSettings(agentFields, config), host);
}

const absent: EncoderSeen = { kind: "absent", reason: "sharp is not installed" };

test("one that works is told with its libraries", async () => {
  const versions = { sharp: "1.2.3", vips: "4.5.6" };
  expect(await found({ kind: "opened", versions }, false)).toEqual({
    check: "images",
    state: "ok",
    text: "pictures can be made smaller: sharp 1.2.3, vips 4.5.6",
  });
});

test("without sharp it depends on whether a picture was asked for", async () => {
  expect(await found(absent, false)).toMatchObject({
    state: "skipped",
    text: expect.stringMatching(/^sharp is not installed: .*images.optimize/),
  });
  expect(await found(absent, true)).toMatchObject({
    state: "warning",
    text: expect.stringMatching(/images.optimize, and sharp is not installed/),
    hint: expect.stringMatching(/npm install sharp/),
  });
});

test("one that does not start is warned of in any case", async () => {
  const failed: EncoderSeen = { kind: "failed", reason: "the encoder ended: 1" };
  expect(await found(failed, false)).toMatchObject({
    state: "warning",
    text: "the encoder of pictures does not start: the encoder ended: 1",
    hint: expect.stringMatching(/\S/),
  });
});

test("where the settings do without it nothing is started", async () => {
  expect(await found(absent, true, false)).toMatchObject({ state: "skipped" });
});
