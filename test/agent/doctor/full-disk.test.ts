// What the doctor says of a real disk that is full, and of one that turned read-only after an error.

import { join } from "node:path";
import { expect, test } from "vitest";
import { checkDisk } from "../../../src/agent/doctor/disk.ts";
import { agentProgram, placeOf } from "../../../src/base/instance.ts";
import { checkStateDir } from "../../../src/agent/doctor/files.ts";
import type { AgentSettings } from "../../../src/agent/settings/fields.ts";
import { canMountDisks, SmallDisk } from "../../support/small-disk.ts";
import { tempDir } from "../../support/temp-dir.ts";

const place = placeOf(agentProgram);
const root = { uid: 0, config: place.config, place };

test.skipIf(!canMountDisks)(
  "a full disk and a read-only one are failures, each by its own finding",
  () => {
    using dir = tempDir();
    using disk = new SmallDisk("64M", { files: 256 });
    disk.mount(join(dir.path, "state"));
    const settings = {
      state_dir: disk.at,
      "cache.disk_max": 0,
      "viewset.disk_max": 0,
      "spool.max": 0,
      "accelerator.body_disk_max": 0,
    } as AgentSettings;
    expect(checkStateDir(settings, root).state).toBe("ok");
    expect(checkDisk(settings, root).text).not.toContain("is full");
    disk.fill("for nobody");
    expect(checkDisk(settings, root)).toMatchObject({
      state: "failed",
      text: `the disk of ${disk.at} is full: 0 B are free`,
    });
    expect(checkStateDir(settings, root).state).toBe("ok");
    disk.clean();
    disk.fillNames();
    expect(checkDisk(settings, root)).toMatchObject({
      state: "failed",
      text: `no more files can be made on the disk of ${disk.at}: there are 256, its most`,
    });
    disk.clean();
    disk.break();
    expect(checkStateDir(settings, root)).toMatchObject({
      state: "failed",
      text: expect.stringContaining("EROFS"),
      hint: expect.stringContaining("read-only"),
    });
  },
);
