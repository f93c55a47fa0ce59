// A picture that the installed program's library encodes inside of the agent's unit: its user, its file system, its calls of the kernel.

import { expect } from "vitest";
import type { BootedDebian } from "./booted.ts";

/** What a unit has that starts a daemon, has its secrets and keeps it alive; all else of it restricts. */
const ofDaemon =
  /^(?:Condition\w+|StartLimitIntervalSec|NotifyAccess|FileDescriptorStoreMax|Exec\w+|Restart\w*|WatchdogSec|LoadCredential|WantedBy)=.*\n/gm;

const unit = "picture-in-unit";

/** As the program does: found from its own file. What is mapped says which version's library it is. */
const script = `
const { readFileSync, writeFileSync } = require("node:fs");
const main = process.argv[1];
let said;
try {
  const sharp = require("node:module").createRequire(main)("sharp");
  const picture = sharp({ create: { width: 640, height: 480, channels: 3, background: "teal" } });
  const encode = async () => {
    const made = {};
    for (const format of ["avif", "webp", "jpeg"])
      made[format] = (await picture.clone()[format]().toBuffer()).subarray(0, 12).toString("latin1");
    const [library] = /\\/\\S*libvips-cpp\\S*/.exec(readFileSync("/proc/self/maps", "utf8"));
    return { library, made };
  };
  encode().then(tell, (error) => tell({ failed: error.message }));
} catch (error) {
  tell({ failed: error.message.split("\\n")[0] });
}
function tell(what) {
  writeFileSync(process.env.STATE_DIRECTORY + "/said.json", JSON.stringify(what));
}
`;

type PictureSaid =
  | { readonly library: string; readonly made: Readonly<Record<string, string>> }
  | { readonly failed: string };

/** Encodes one picture in each format, in a unit that has all restrictions of accel-agent.service. `main`: the program's own file. */
async function pictureInUnit(debian: BootedDebian, main: string): Promise<PictureSaid> {
  const installed = await debian.must("cat /lib/systemd/system/accel-agent.service");
  const node = main.replace(/\/dist\/.*$/, "/bin/node");
  debian.write("/usr/local/share/picture.cjs", script);
  const text = installed
    .replaceAll(ofDaemon, "")
    .replace("Type=notify", "Type=oneshot")
    .replaceAll("=accel-agent\n", `=${unit}\n`)
    .replace(
      "[Service]\n",
      `[Service]\nExecStart=${node} -e "eval(require('node:fs').readFileSync('/usr/local/share/picture.cjs','utf8'))" ${main}\n`,
    );
  debian.write(`/usr/local/lib/systemd/system/${unit}.service`, text);
  await debian.must("systemctl daemon-reload");
  await debian.must(`systemctl start ${unit}`);
  return JSON.parse(await debian.must(`cat /var/lib/private/${unit}/said.json`)) as PictureSaid;
}

/** The version that lies in `home` encodes each format, by its own library; where that is missing, it says so. */
export async function expectPictures(debian: BootedDebian, home: string): Promise<void> {
  const main = `${home}/dist/main.js`;
  const modules = `${home}/node_modules`;
  const library = expect.stringContaining(`${modules}/@img/sharp-libvips-linux-`);
  const made = {
    avif: expect.stringContaining("ftypavif"),
    webp: expect.stringMatching(/^RIFF[^]{4}WEBP/),
    jpeg: expect.stringMatching(/^\u00ff\u00d8/),
  };
  expect(await pictureInUnit(debian, main)).toEqual({ library, made });
  await debian.must(`mv ${modules}/@img ${home}/away`);
  const failed = expect.stringContaining("sharp");
  expect(await pictureInUnit(debian, main)).toEqual({ failed });
  await debian.must(`mv ${home}/away ${modules}/@img`);
}
