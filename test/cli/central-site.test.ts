// Operators' commands for deployment sites and the codes with which hosts join, against a whole central.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { auditCommand } from "../../src/cli/central-audit.ts";
import { customerCommand } from "../../src/cli/central-customer.ts";
import { siteCommand } from "../../src/cli/central-site.ts";
import { userCommand } from "../../src/cli/central-user.ts";
import type { Command } from "../../src/base/command.ts";
import { authorityDigestOf, readCode } from "../../src/wire/enrolment.ts";
import { settingsOf, start } from "../support/central-whole.ts";
import { tempDir } from "../support/temp-dir.ts";
import { makeCertificate } from "../support/x509.ts";
import { run } from "./command-rig.ts";

let stateDir: string;
const stack = new AsyncDisposableStack();
beforeAll(async () => {
  stateDir = stack.use(tempDir()).path;
  stack.use(await start(settingsOf(stateDir)));
  const customer = await facts(customerCommand, "add", "Example Ltd");
  await facts(userCommand, "add", "anna", "--customer", String(customer["id"]));
});
afterAll(async () => stack.disposeAsync());

const say = async (command: Command, ...args: readonly string[]): Promise<string> =>
  run(command, [...args, "--state-dir", stateDir]);
const facts = async (command: Command, ...args: readonly string[]) =>
  Object(JSON.parse(await say(command, ...args, "--json"))) as Record<string, unknown>;

test("a site is made for a user and listed without its secret", async () => {
  const made = await facts(siteCommand, "add", "--user", "anna", "--tags", "eu,b");
  expect(made).toMatchObject({ tags: "eu,b", name16: expect.stringMatching(/^[0-9a-f]{16}$/) });
  expect(made).not.toHaveProperty("secret16");
  const [heading, line] = (await say(siteCommand, "list")).split("\n");
  expect(heading).toMatch(/^id +name16 +customer id +tags +when created$/);
  expect(line).toMatch(/^\d+ +[0-9a-f]{16} +\d+ +eu,b +\d{4}-/);
  await expect(say(siteCommand, "add", "--user", "nobody")).rejects.toThrow(
    "there is no user nobody",
  );
});

test("a code is shown once, listed without itself, and revoked; the audit trail has all of it", async () => {
  const site = String((await facts(siteCommand, "add", "--user", "anna"))["id"]);
  const said = await say(siteCommand, "enrol", site, "--uses", "3", "--for", "2d");
  expect(said).toMatch(
    /^enrol1_[0-9a-f]{40}\n\nOn the new host, until .* and on 3 hosts at most:\n/,
  );
  const code = said.split("\n")[0] ?? "";
  const made = await facts(siteCommand, "enrol", site);
  expect(made).toMatchObject({ uses: 1, used: 0, state: "open" });
  const listed = await say(siteCommand, "codes", site);
  expect(listed).toMatch(
    /^id +state +used +uses +when last used +last used from +when expires +created by\n\d+ +open +0 +3 +– +– +2/,
  );
  expect(listed).toContain("operator ");
  expect(listed).not.toContain(code.slice(7, 39));
  expect(await facts(siteCommand, "revoke", site, String(made["id"]))).toMatchObject({
    state: "revoked",
  });
  expect(await say(siteCommand, "codes", site)).toMatch(/ revoked /);
  const trail = await say(auditCommand);
  for (const action of ["site add", "site enrol", "site revoke"]) expect(trail).toContain(action);
  expect(trail).not.toContain(code.slice(7, 39));
  const lines = (await say(auditCommand, "--json")).trim().split("\n");
  const whose = lines.map((line) => String(Object(JSON.parse(line))["who"]));
  expect(new Set(whose).size, whose.join(" ")).toBe(1);
});

test("a code that is made is told with its number, and with the line that revokes it", async () => {
  const site = String((await facts(siteCommand, "add", "--user", "anna"))["id"]);
  await say(siteCommand, "enrol", site);
  const said = await say(siteCommand, "enrol", site);
  const [, id = "", line = ""] =
    /\nIt is code (\d+) of .*\n {2}accel-central site (revoke .*)\n$/.exec(said) ?? [];
  expect(said).toContain(`\n\nIt is code ${id} of deployment site ${site}. This revokes it:\n`);
  expect(line).toBe(`revoke ${site} ${id} --state-dir ${stateDir}`);
  await run(siteCommand, line.split(" "));
  const listed: unknown = JSON.parse(await say(siteCommand, "codes", site, "--json"));
  expect(listed).toMatchObject([{ state: "open" }, { id: Number(id), state: "revoked" }]);
});

test.each<[string, string | undefined]>([
  ["https://central.example.com", "https://central.example.com"],
  ["https://[2001:db8::1]:8443/", "'https://[2001:db8::1]:8443'"],
  ["http://127.0.0.1:8000", undefined],
  ["https://localhost:8443", undefined],
  ["https://[::1]", undefined],
  ["https://0.0.0.0", undefined],
  ["https://[::]:8443", undefined],
  // An agent takes plain http for loopback alone.
  ["http://central.example.com", undefined],
])(
  "of a central with base_url %s, the line with which a host joins names %s",
  async (base, named) => {
    await using own = new AsyncDisposableStack();
    const dir = own.use(tempDir()).path;
    own.use(await start(settingsOf(dir, `base_url: "${base}"\n`)));
    const told = async (command: Command, ...args: readonly string[]) =>
      run(command, [...args, "--state-dir", dir]);
    await told(customerCommand, "add", "Example Ltd");
    await told(userCommand, "add", "anna", "--customer", "1");
    await told(siteCommand, "add", "--user", "anna");
    const said = await told(siteCommand, "enrol", "1");
    expect(said).toContain(
      `:\n  accel-agent join --central ${named ?? "URL"}\n\nIt asks for the code. A further agent of a host takes --instance NAME, and a host that has joined --replace.\n`,
    );
    const address = `\nURL is the https address by which hosts reach this central, such as https://central.example.com. Its settings do not name one: base_url is ${base}.\n`;
    expect(said.includes(address)).toBe(named === undefined);
    const made: unknown = JSON.parse(await told(siteCommand, "enrol", "1", "--json"));
    const url = base.replace(/\/$/, "");
    expect(made).toMatchObject({ base_url: url, central_url: named === undefined ? null : url });
  },
);

test("a code of a central with `ca_file` carries its digest", async () => {
  await using own = new AsyncDisposableStack();
  const dir = own.use(tempDir()).path;
  const { pem } = makeCertificate({ subject: "An authority", isAuthority: true });
  writeFileSync(join(dir, "ca.pem"), pem);
  own.use(await start(settingsOf(join(dir, "state"), `ca_file: ${join(dir, "ca.pem")}\n`)));
  const told = async (command: Command, ...args: readonly string[]) =>
    Object(
      JSON.parse(await run(command, [...args, "--state-dir", join(dir, "state"), "--json"])),
    ) as Record<string, unknown>;
  const { id } = await told(customerCommand, "add", "Example Ltd");
  await told(userCommand, "add", "anna", "--customer", String(id));
  const site = await told(siteCommand, "add", "--user", "anna");
  const { code } = await told(siteCommand, "enrol", String(site["id"]));
  expect(readCode(String(code))).toMatchObject({ authorityDigest: authorityDigestOf(pem) });
});

test.each([
  [["enrol"], "site enrol takes the number of a site"],
  [["enrol", "x"], "site enrol takes a number, not x"],
  [["enrol", "999"], "there is no deployment site 999"],
  [["enrol", "1", "--uses", "101"], "uses"],
  [["enrol", "1", "--for", "30s"], "--for 30s: must be a time from 1min to 7d"],
  [["codes", "1", "--uses", "2"], "--uses does not go with site codes"],
  [["revoke", "1"], "site revoke takes the numbers of a site and of a code"],
  [["revoke", "1", "999"], "deployment site 1 has no code 999"],
  [["revoke", "1", "2", "3"], "unexpected argument '3'"],
  [["codes", "1", "2"], "site codes takes the number of a site alone"],
  [["list", "1"], "site list takes no number"],
  [["add"], "site add takes --user NAME"],
  [["remove"], "site remove: one of list, add, enrol, codes, revoke"],
])("%j is refused", async (args, words) => {
  await expect(say(siteCommand, ...args)).rejects.toThrow(words);
});

test("of a number that there is not, it is told where the numbers are", async () => {
  const hint = "`accel-central site list` has the number of each.";
  for (const args of [["enrol"], ["codes"]])
    await expect(say(siteCommand, ...args, "999")).rejects.toMatchObject({ hint });
  const site = String((await facts(siteCommand, "add", "--user", "anna"))["id"]);
  await expect(say(siteCommand, "revoke", site, "999")).rejects.toMatchObject({
    hint: `\`accel-central site codes ${site}\` has the number of each.`,
  });
});

test("of a mistyped option the one is named that goes with the verb", async () => {
  await expect(say(siteCommand, "enrol", "1", "--use", "3")).rejects.toThrow(
    "Unknown option '--use'; did you mean --uses?",
  );
});
