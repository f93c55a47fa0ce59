// The packages on a bare Debian 12 that boots: installed, served from, upgraded, rebooted, removed and purged, as their user does it.

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createCustomerClient, type CustomerClient } from "../../src/client/customer-client.ts";
import { startAptRepository, type AptRepository } from "../support/apt-repository.ts";
import { BootedDebian, bootedHint, bootedMissing } from "../support/booted.ts";
import { freePorts } from "../support/free-ports.ts";
import { installNoGood, mainPidOf, runningOf } from "../support/no-good-release.ts";
import { countDuring } from "../support/steady-visitors.ts";
import { expectPictures } from "../support/packaged-picture.ts";
import { tempDir } from "../support/temp-dir.ts";
import { startOrigin, type Origin } from "../support/origin.ts";
import { until } from "../support/until.ts";

const root = join(import.meta.dirname, "../..");
const domain = "www.example.test";
const names = ["accel-common", "accel-agent", "accel-central"] as const;
const lib = "/usr/lib/accel-agent";

/** What `systemd-analyze security` says of the units, at most: 0 is best, 10 is worst. */
const exposures = { "accel-agent.service": 1.8, "accel-central.service": 1.4 };

const dir = tempDir();
let debian: BootedDebian;
let client: CustomerClient;
let origin: Origin;
let repository: AptRepository;
let ports = { central: 0, edge: 0, metrics: 0, second: 0, secondMetrics: 0 };

afterAll(async () => {
  await (debian as BootedDebian | undefined)?.[Symbol.asyncDispose]();
  await (origin as Origin | undefined)?.[Symbol.asyncDispose]();
  await (repository as AptRepository | undefined)?.[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

/** Builds the packages into a directory that the system sees as `/root/NAME`; compressed as little as can be. */
function build(version: string, out: string): readonly string[] {
  const options = ["--level", "none", "--version", version, "--out", join(dir.path, out)];
  execFileSync(process.execPath, ["scripts/package.mjs", ...options], { cwd: root, stdio: "pipe" });
  return globSync("*.deb", { cwd: join(dir.path, out) }).toSorted();
}

const install = (from: string): Promise<string> =>
  debian.must(`apt-get install -y --no-install-recommends /root/${from}/*.deb 2>&1`);

/** What an operator writes before the host joins. */
const agentYaml = (): string => `
accelerator: { listen: 127.0.0.1:${ports.edge}, workers: 1, default_domain: ${domain} }
metrics: { listen: 127.0.0.1:${ports.metrics} }
sites: [{ domain: ${domain}, views_dir: /srv/www, devlove_file: /srv/devlove.json }]
`;

/** Runs a line that a page tells its reader to run; central and the repository are here instead of at the example's addresses. */
const told = async (line: string, input = "", page = "README.md"): Promise<string> => {
  expect(readFileSync(join(root, page), "utf8")).toContain(`\n${line}\n`);
  const here = line
    .replace("https://central.example.com", base())
    .replace("https://packages.example.com", repository.url);
  return debian.must(input === "" ? here : `cat | ${here}`, input);
};
const base = (): string => `http://127.0.0.1:${ports.central}`;

/** The versions whose files are there. */
const versions = (): readonly string[] =>
  readdirSync(join(debian.root, lib))
    .filter((name) => /^\d/.test(name))
    .toSorted();

const get = async (path: string, port = ports.edge): Promise<Response> =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    headers: {
      "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    },
  });
const served = async (path: string, port = ports.edge): Promise<string> => {
  const answer = await get(path, port);
  return `${answer.status} ${(await answer.text()).trim()}`;
};

const isActive = async (unit: string): Promise<string> =>
  (await debian.sh(`systemctl is-active ${unit}; systemctl is-enabled ${unit}`)).out.trim();

const mainPid = async (unit: string): Promise<string> => mainPidOf(debian, unit);
const running = async (unit: string): Promise<string> => runningOf(debian, unit);

beforeAll(async () => {
  if (bootedMissing) return;
  const [central = 0, edge = 0, metrics = 0, second = 0, secondMetrics = 0] = await freePorts(5);
  ports = { central, edge, metrics, second, secondMetrics };
  origin = await startOrigin();
  repository = await startAptRepository(dir.path);
  debian = await BootedDebian.boot(dir.path);
});

const visitedDuring = async (action: () => Promise<void>) =>
  countDuring({ port: ports.edge, name: domain, body: "the site's own page\n" }, action);

const step = test.skipIf(bootedMissing);

step(
  `two builds of one commit are the same bytes (${bootedHint})`,
  () => {
    const [one, again] = [build("1.0.0", "one"), build("1.0.0", "again")];
    expect(one).toEqual(
      names
        .toSorted()
        .map((name) =>
          expect.stringMatching(new RegExp(`^${name}_1\\.0\\.0_(all|amd64|arm64)\\.deb$`)),
        ),
    );
    expect(again).toEqual(one);
    for (const file of one)
      expect(
        readFileSync(join(dir.path, "one", file)).equals(
          readFileSync(join(dir.path, "again", file)),
        ),
        file,
      ).toBe(true);
    for (const [version, out] of [
      ["1.1.0", "two"],
      ["1.2.0", "three"],
    ] as const)
      build(version, out);
    for (const out of ["one", "two", "three"])
      cpSync(join(dir.path, out), join(debian.root, "root", out), { recursive: true });
  },
  300_000,
);

step(
  `installed on a bare system: commands run, nothing is started, nothing is in /etc (${bootedHint})`,
  async () => {
    await debian.must("apt-get update 2>&1");
    await install("one");
    for (const program of ["accel-agent", "accel-central"]) {
      expect(await debian.must(`${program} version`)).toBe(`${program} 1.0.0\n`);
      expect(await isActive(program)).toBe("inactive\ndisabled");
      expect(existsSync(join(debian.root, "etc", program))).toBe(false);
      const { code } = await debian.sh(`systemctl start ${program}`);
      expect([code, (await isActive(program)).split("\n")[0]]).toEqual([0, "inactive"]);
      expect(await debian.must(`systemctl status ${program} 2>&1 || true`)).toContain(
        "ConditionPathExists",
      );
    }
    expect(await debian.must("dpkg --verify accel-common accel-agent accel-central")).toBe("");
    expect(await debian.must("ldd /usr/lib/accel-agent/current/bin/node")).not.toContain(
      "not found",
    );
  },
);

step(`pictures are encoded within the agent's unit (${bootedHint})`, async () =>
  expectPictures(debian, `${lib}/1.0.0`),
);

step(`central, a site, a host that joins: a page is served (${bootedHint})`, async () => {
  await told(
    "install -D -m 644 /usr/share/accel-central/central.yaml /etc/accel-central/central.yaml",
  );
  const settings = `listen: 127.0.0.1:${ports.central}\nbase_url: ${base()}\n`;
  debian.write("/etc/accel-central/central.yaml", settings);
  await told("accel-central check");
  await told("systemctl enable --now accel-central");
  await told("accel-central customer add Example");
  const added = await told("accel-central user add anna --customer 1 --token");
  const token = /^token +(\S+)$/m.exec(added)?.[1] ?? "";
  await told("accel-central site add --user anna");
  const [code = ""] = (await told("accel-central site enrol 1")).split("\n");
  client = createCustomerClient({ baseUrl: base(), token });
  const site = await client.site(1);

  debian.write("/srv/www/index.html", "the site's own page\n");
  const backend = { urls: [origin.url] };
  const devlove = {
    domains: { [domain]: { views_dir: ".", backend, cache: { default: { ttl_s: 60 } } } },
  };
  debian.write("/srv/devlove.json", JSON.stringify(devlove));
  debian.write("/etc/accel-agent/agent.yaml", agentYaml());
  const joined = await told("accel-agent join --central https://central.example.com", `${code}\n`);
  expect(joined).toContain(`deployment site 1 (name16 ${site.name16}): joined at ${base()}`);
  expect(joined).toContain("the agent runs, and starts at each boot");
  expect(await isActive("accel-agent")).toBe("active\nenabled");
  expect(await debian.must("stat -c '%a %U' /etc/accel-agent/secret16")).toBe("600 root\n");
  expect(await debian.must("accel-agent check")).toContain("valid");

  const { out: examined, code: unfit } = await debian.sh("accel-agent doctor");
  expect([unfit, examined]).toEqual([0, expect.stringMatching(/^ok +unit +it shows and allows/m)]);
  expect(examined).toMatch(/^ok +images +pictures can be made smaller: sharp \d/m);
  expect(await debian.must("accel-agent netcheck")).toContain("no site in force has one");

  for (const [unit, worst] of Object.entries(exposures))
    expect(await debian.exposure(unit), unit).toBeLessThanOrEqual(worst);

  await client.createDomain(domain, { deploymentSiteId: site.id });
  await until("the page is served", async () => (await served("/")) === "200 the site's own page");
  await until("a page of the origin is cached", async () => {
    const [one, other] = [await served("/page/price"), await served("/page/price")];
    return one.startsWith("200 /page/price answer") && one === other;
  });
  expect(await told("accel-agent status")).toContain("1.0.0");
});

/** The second agent of the host, of another site. */
const bothServe = async (): Promise<boolean> =>
  (await served("/")) === "200 the site's own page" &&
  (await served("/", ports.second)) === "200 the other site's page";

step(`a second agent of another site on the same host (${bootedHint})`, async () => {
  await debian.must("accel-central site add --user anna");
  const [code = ""] = (await debian.must("accel-central site enrol 2")).split("\n");
  const join2 = `accel-agent join --instance b --central ${base()}`;
  const yaml = agentYaml().replaceAll(domain, "www.other.test").replaceAll("/srv/", "/srv/b/");
  debian.write("/etc/accel-agent/b/agent.yaml", yaml);
  const taken = await debian.sh(`echo ${code} | ${join2}`);
  expect([taken.code, taken.err]).toEqual([
    1,
    expect.stringContaining(
      `accelerator.listen 127.0.0.1:${ports.edge} is accelerator.listen of /etc/accel-agent/agent.yaml too`,
    ),
  ]);
  expect(existsSync(join(debian.root, "etc/accel-agent/b/secret16"))).toBe(false);

  const own = yaml
    .replace(`:${ports.edge},`, `:${ports.second},`)
    .replace(`:${ports.metrics} `, `:${ports.secondMetrics} `);
  debian.write("/etc/accel-agent/b/agent.yaml", own);
  debian.write("/srv/b/www/index.html", "the other site's page\n");
  const devlove = { domains: { "www.other.test": { views_dir: "." } } };
  debian.write("/srv/b/devlove.json", JSON.stringify(devlove));
  const joined = await debian.must(`echo ${code} | ${join2}`);
  expect(joined).toContain("accel-agent status --instance b");
  expect(await isActive("accel-agent@b")).toBe("active\nenabled");
  expect(await debian.must("stat -c '%a %U' /etc/accel-agent/b/secret16")).toBe("600 root\n");
  await client.createDomain("www.other.test", { deploymentSiteId: 2 });
  await until("both serve", bothServe);

  const site = async (option: string): Promise<string> =>
    (JSON.parse(await debian.must(`accel-agent status --json ${option}`)) as { name16: string })
      .name16;
  const names16 = [await site(""), await site("--instance b")];
  expect(new Set(names16).size).toBe(2);
  expect(await site("--config /etc/accel-agent/b/agent.yaml")).toBe(names16[1]);
  const { out: examined, code: unfit } = await debian.sh("accel-agent doctor --instance b");
  expect([unfit, examined]).toEqual([0, expect.stringMatching(/^ok +unit +it shows and allows/m)]);
  const users = await debian.must(
    "for u in accel-agent accel-agent@b; do sed -n 's/^Uid:.//p' /proc/$(systemctl show -p MainPID --value $u)/status; done",
  );
  expect(new Set(users.trim().split("\n")).size).toBe(2);
  await debian.must("systemctl reload accel-agent@b");
  expect(await debian.exposure("accel-agent@b.service")).toBeLessThanOrEqual(
    exposures["accel-agent.service"],
  );
});

step(`an upgrade that is not complete changes nothing of what runs (${bootedHint})`, async () => {
  for (const unit of ["accel-agent", "accel-central"])
    expect(await running(unit), unit).toBe(`${lib}/1.0.0/bin/node`);
  await debian.must("dpkg --unpack /root/two/*.deb 2>&1");
  // The matcher is a process that starts with the first pattern: it starts now.
  const clear = await client.clear(domain, ["path:page"], { waitSeconds: 30 });
  expect(clear.deployments).toMatchObject([{ state: "applied", matched: 1 }]);
  const matchers = await debian.must(
    `for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done | grep matcher || true`,
  );
  expect(matchers).toContain(`${lib}/1.0.0/`);
  expect(matchers).not.toContain(`${lib}/package/`);
  expect(await debian.must("accel-agent version")).toBe("accel-agent 1.0.0\n");
  expect(await served("/")).toBe("200 the site's own page");
});

step(`upgraded: the new version takes over, the one before stays (${bootedHint})`, async () => {
  const configure = async () => void (await debian.must("dpkg --configure -a 2>&1"));
  expect((await visitedDuring(configure)).wrong).toEqual({});
  expect(await debian.must("accel-agent version")).toBe("accel-agent 1.1.0\n");
  for (const unit of ["accel-agent", "accel-agent@b", "accel-central"])
    expect(await running(unit), unit).toBe(`${lib}/1.1.0/bin/node`);
  expect(versions()).toEqual(["1.0.0", "1.1.0"]);
  await until("both serve", bothServe);
  for (const unit of ["accel-agent", "accel-agent@b"])
    expect(await debian.journal(unit), unit).toContain('"handed over"');
  await install("three");
  expect(versions()).toEqual(["1.1.0", "1.2.0"]);
});

step(`a version that is no good: the one before serves on (${bootedHint})`, async () => {
  await installNoGood(debian, `${lib}/1.2.0`, visitedDuring);
  await install("three");
  expect(await running("accel-agent")).toBe(`${lib}/1.2.0/bin/node`);
});

step(`back to the version before (${bootedHint})`, async () => {
  await debian.must("apt-get install -y --allow-downgrades /root/two/*.deb 2>&1");
  expect(await running("accel-agent")).toBe(`${lib}/1.1.0/bin/node`);
  expect(versions()).toEqual(["1.1.0", "1.2.0"]);
  await until("the page is served", async () => (await served("/")) === "200 the site's own page");
});

step(
  `a reload says what is wrong with the file, and what needs a restart (${bootedHint})`,
  async () => {
    const path = "/etc/accel-agent/agent.yaml";
    const good = readFileSync(join(debian.root, path), "utf8");
    const pid = await mainPid("accel-agent");
    debian.write(path, `${good}log_level: loud\n`);
    expect((await debian.sh("systemctl reload accel-agent")).code).not.toBe(0);
    expect(await debian.journal("accel-agent")).toContain(
      "log_level must be one of trace, debug, info, warn, error, fatal",
    );
    debian.write(path, `${good}log_level: debug\nof_a_later_release: 1\nwatch_views: false\n`);
    await debian.must("systemctl reload accel-agent");
    await until("it is told", async () => {
      const said = await debian.journal("accel-agent");
      return /of_a_later_release/.test(said) && /"restart":\["watch_views"\]/.test(said);
    });
    await debian.must("systemctl reload accel-central");
    expect(await mainPid("accel-agent")).toBe(pid);
    expect((await debian.sh("accel-agent check")).err).toContain("of_a_later_release unknown key");
    await debian.must("systemctl restart accel-agent");
    await until(
      "the page is served",
      async () => (await served("/")) === "200 the site's own page",
    );
    debian.write(path, good);
  },
);

step(`the journal files each line by its level, and has it as JSON (${bootedHint})`, async () => {
  const lines = async (more: string): Promise<readonly string[]> =>
    (await debian.must(`journalctl -q --no-pager -u accel-agent _TRANSPORT=stdout ${more}`))
      .trim()
      .split("\n");
  const filed = (await lines("-o json")).map(
    (line) => JSON.parse(line) as { PRIORITY: string; MESSAGE: string },
  );
  const ofLog = filed.filter(({ MESSAGE }) => MESSAGE.startsWith('{"level"'));
  const seen = new Set(
    ofLog.map(({ PRIORITY, MESSAGE }) => {
      const { level } = JSON.parse(MESSAGE) as { level: string };
      return `${level} ${PRIORITY}`;
    }),
  );
  expect([...seen]).toEqual(expect.arrayContaining(["info 6", "warn 4"]));
  const right = ["trace 7", "debug 7", "info 6", "warn 4", "error 3", "fatal 2"];
  expect([...seen].filter((pair) => !right.includes(pair))).toEqual([]);
  // The reload of the step before, which failed.
  expect((await lines("-o cat -p err")).join("\n")).toContain("log_level must be one of");
});

step(
  `restarted, and killed: nobody is refused, and a stop closes the port (${bootedHint})`,
  async () => {
    // A process that took over was started by another one than systemd, which notices its end all the same.
    for (const change of ["systemctl restart accel-agent", "accel-agent replace"]) {
      expect((await visitedDuring(async () => void (await debian.must(change)))).wrong).toEqual({});
      const killed = await visitedDuring(async () => {
        const pid = await mainPid("accel-agent");
        await debian.must(`kill -KILL ${pid}`);
        await until("another one serves", async () => (await mainPid("accel-agent")) !== pid);
      });
      // Whose connection the process had is cut off.
      expect(Object.keys(killed.wrong).join()).toMatch(/^(?:,?(?:new|kept): ECONNRESET)*$/);
    }
    await debian.must("systemctl stop accel-agent");
    await expect(get("/")).rejects.toMatchObject({ cause: { code: "ECONNREFUSED" } });
    await debian.must("systemctl start accel-agent");
    await until("both serve", bothServe);
  },
);

step(`after a reboot both serve again (${bootedHint})`, async () => {
  await debian.reboot();
  await until("both serve", bothServe);
  expect(await isActive("accel-central")).toBe("active\nenabled");
  const status = JSON.parse(await debian.must("accel-agent status --json")) as { version: string };
  expect(status.version).toBe("1.1.0");
});

step(
  `a thread that hangs is noticed by the watchdog, and the agent is started again (${bootedHint})`,
  async () => {
    const dropIn = "/etc/systemd/system/accel-agent.service.d/watchdog.conf";
    debian.write(dropIn, "[Service]\nWatchdogSec=5\n");
    await debian.must("systemctl daemon-reload && systemctl restart accel-agent");
    const pid = await mainPid("accel-agent");
    await debian.must(`kill -STOP ${pid}`);
    await until("another one serves", async () => {
      const now = await mainPid("accel-agent");
      return now !== pid && (await served("/")) === "200 the site's own page";
    });
    expect(await debian.journal("accel-agent")).toContain("Watchdog timeout");
  },
);

step(`a program that does not start does not break the installation (${bootedHint})`, async () => {
  const settings = "/etc/accel-central/central.yaml";
  const good = readFileSync(join(debian.root, settings), "utf8");
  debian.write(settings, "listen: nonsense\n");
  let said = "";
  const installed = await visitedDuring(async () => void (said = await install("three")));
  expect(installed.wrong).toEqual({});
  expect(said).toContain("accel-central did not start with the version that was installed");
  expect(await debian.must("dpkg --audit")).toBe("");
  debian.write(settings, good);
  await debian.must("systemctl restart accel-central");
  await until("both serve", bothServe);
});

step(`removed: settings and state stay; purged: nothing does (${bootedHint})`, async () => {
  const kept = [
    "etc/accel-agent/agent.yaml",
    "etc/accel-agent/secret16",
    "var/lib/private/accel-agent",
    "etc/accel-agent/b/secret16",
    "var/lib/private/accel-agent-b",
  ];
  const there = (): readonly boolean[] => kept.map((path) => existsSync(join(debian.root, path)));
  await debian.must("systemctl stop accel-agent@b");
  await debian.must("apt-get remove -y accel-agent 2>&1");
  expect(there()).toEqual(kept.map(() => true));
  for (const port of [ports.edge, ports.second]) await expect(get("/", port)).rejects.toThrow();
  await install("three");
  // What ran before runs again; what its operator had stopped does not.
  expect((await isActive("accel-agent")).split("\n")).toEqual(["active", "enabled"]);
  expect((await isActive("accel-agent@b")).split("\n")).toEqual(["inactive", "enabled"]);
  expect(existsSync(join(debian.root, "var/lib/accel-agent.removed"))).toBe(false);
  await until("the page is served", async () => (await served("/")) === "200 the site's own page");
  await debian.must(`apt-get purge -y ${names.join(" ")} 2>&1`);
  expect(there()).toEqual(kept.map(() => false));
  const found = await debian.must(
    "find / -xdev \\( -path /root -o -path /proc -o -path /sys -o -path /var/log \\) -prune -o -name '*accel-*' -print",
  );
  expect(found).toBe("");
});

/** The steps from here on begin with the bare system again. */
const installPage = "docs/operations/install.md";
/** What apt knows of the agent: the version that is installed, and the one that it would install. */
const known = async (): Promise<string> =>
  (await debian.must("apt-cache policy accel-agent | sed -n 's/^  [IC][a-z]*: //p'")).trim();
const dpkgLists = "dpkg-query -W -f '${Package} ${Version}\\n' 'accel-*'";

step(`a signed repository: installed and upgraded from it (${bootedHint})`, async () => {
  repository.publish(join(dir.path, "one"));
  for (const line of [
    "install -d -m 755 /etc/apt/keyrings",
    "/usr/lib/apt/apt-helper download-file https://packages.example.com/accel-agent.asc /etc/apt/keyrings/accel-agent.asc",
    'echo "deb [signed-by=/etc/apt/keyrings/accel-agent.asc] https://packages.example.com/ ./" > /etc/apt/sources.list.d/accel-agent.list',
  ])
    await told(line, "", installPage);
  await debian.must("apt-get update 2>&1");
  await debian.must("apt-get install -y --no-install-recommends accel-agent accel-central 2>&1");
  expect(repository.asked()).toEqual(
    expect.arrayContaining(["InRelease", "Packages.gz", "accel-agent_1.0.0_all.deb"]),
  );
  repository.publish(join(dir.path, "two"));
  await debian.must("apt-get update 2>&1");
  await debian.must("apt-get upgrade -y 2>&1");
  expect(await debian.must(dpkgLists)).toBe(
    "accel-agent 1.1.0\naccel-central 1.1.0\naccel-common 1.1.0\n",
  );
  expect(await debian.must("accel-agent version; accel-central version")).toBe(
    "accel-agent 1.1.0\naccel-central 1.1.0\n",
  );
});

step(`packages and indexes that somebody changed are refused (${bootedHint})`, async () => {
  const update = async (): Promise<string> => {
    const { code, out } = await debian.sh("apt-get update 2>&1");
    return `${code} ${out}`;
  };
  repository.publish(join(dir.path, "three"));
  repository.spoil("Packages.gz");
  expect(await update()).toMatch(/^100 .*Hash Sum mismatch/s);
  expect(await known()).toBe("1.1.0\n1.1.0");

  repository.spoil("accel-agent_1.2.0_all.deb");
  expect(await update()).toMatch(/^0 /);
  expect(await known()).toBe("1.1.0\n1.2.0");
  const { code, out } = await debian.sh("apt-get upgrade -y 2>&1");
  expect([code, out]).toEqual([100, expect.stringContaining("Hash Sum mismatch")]);
  expect(await known()).toBe("1.1.0\n1.2.0");
  expect(await debian.must("accel-agent version")).toBe("accel-agent 1.1.0\n");

  repository.spoil("");
  repository.publish(join(dir.path, "three"), "another");
  // It goes on with the index that it has, and says why.
  expect(await update()).toMatch(/^0 .*signature verification.*previous index files will be used/s);
  await debian.must("rm -rf /var/lib/apt/lists/127.0.0.1*");
  expect(await update()).toMatch(/^100 .*is not signed/s);
  expect(await known()).toBe("1.1.0\n1.1.0");

  repository.publish(join(dir.path, "three"));
  expect(await update()).toMatch(/^0 /);
  await debian.must("apt-get upgrade -y 2>&1");
  expect(await known()).toBe("1.2.0\n1.2.0");
});
