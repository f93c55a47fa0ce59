/**
 * Apache Traffic Server with the three ways of clearing that it has: PURGE for one URL; regex_revalidate, whose rules are read again on a reload and
 * make older objects stale (by date, so to the second); remap_purge, which moves the whole site to a new generation.
 */

import { execFileSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { command, findVersion, PeerGround, purging, type Peer } from "./peer.ts";

const plugins = "/usr/lib/trafficserver/modules";
const purgeAll = { header: "x-purge-all", secret: "everything" };
const ruleLifetimeS = 3_600;

export const trafficServer: Peer = {
  name: "Traffic Server",
  find: () => findVersion(["traffic_server", "-V"], /traffic_server - ([\d.]+)/),
  async start(originPort) {
    const ground = await PeerGround.open(originPort);
    const env = { TS_RUNROOT: ground.dir };
    const rules = join(ground.dir, "etc", "rules.config");
    try {
      for (const name of ["etc", "var", "run", "log", "cache"]) ground.makeDir(name);
      ground.writeText(layout, "runroot.yaml");
      ground.write("trafficserver.records.config", "etc/records.config");
      ground.writeText("{{dir}}/cache 1024M\n", "etc/storage.config");
      ground.writeText(allowAll, "etc/ip_allow.yaml");
      ground.writeText(`regex_revalidate.so --config ${rules}\n`, "etc/plugin.config");
      ground.writeText("", "etc/rules.config");
      ground.writeText(
        `map / http://127.0.0.1:{{origin_port}}/ @plugin=remap_purge.so @pparam=--state-file={{dir}}/var/generation @pparam=--header=${purgeAll.header} @pparam=--secret=${purgeAll.secret}\n`,
        "etc/remap.config",
      );
      await ground.run(["traffic_manager", `--run-root=${ground.dir}`], env);
    } catch (error) {
      await ground[Symbol.asyncDispose]();
      throw error;
    }
    return {
      url: ground.url,
      ways: [
        {
          name: "Traffic Server",
          one: purging((target) => command(`${ground.url}${target}`, "PURGE")).one,
          under: {
            by: "regex_revalidate, one a second",
            // Rules written in the second of the last reload are not seen.
            prepare: () => sleep(1_100),
            run: async (target) => {
              const expiry = Math.floor(Date.now() / 1_000) + ruleLifetimeS;
              appendFileSync(rules, `http://[^/]*${target} ${expiry}\n`);
              execFileSync("traffic_ctl", ["config", "reload"], {
                env: { ...process.env, ...env },
                stdio: "ignore",
              });
            },
          },
          all: {
            by: "remap_purge",
            run: () => command(`${ground.url}/`, "PURGE", { [purgeAll.header]: purgeAll.secret }),
          },
        },
      ],
      [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
    };
  },
};

/** Programs where the package put them, everything else in the temporary directory. */
const layout = `prefix: {{dir}}
exec_prefix: /usr
bindir: /usr/bin
sbindir: /usr/sbin
sysconfdir: {{dir}}/etc
datadir: {{dir}}/var
includedir: /usr/include
libdir: /usr/lib/trafficserver
libexecdir: ${plugins}
localstatedir: {{dir}}/var
runtimedir: {{dir}}/run
logdir: {{dir}}/log
cachedir: {{dir}}/cache
`;

const allowAll = `ip_allow:
  - apply: in
    ip_addrs: 127.0.0.1
    action: allow
    methods: ALL
`;
