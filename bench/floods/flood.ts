// One attack as a process: `node flood.ts NAME HTTP_PORT HTTPS_PORT SECONDS`. It ends by itself, with its counts as a line of JSON.

import { Attacker } from "./attack.ts";
import { attacks } from "./attacks.ts";

const [name, http, https, seconds] = process.argv.slice(2);
const attack = attacks.find((one) => one.name === name);
if (attack === undefined) throw new Error(`no attack ${name}`);
const victim = { http: Number(http), https: Number(https) };
const attacker = new Attacker(victim, attacks.indexOf(attack) + 1);
setTimeout(
  () => {
    process.stdout.write(JSON.stringify(attacker.counts), () => process.exit(0));
  },
  Number(seconds) * 1_000,
);
attack.run(attacker);
