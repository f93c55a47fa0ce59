// What the units give the programs, for those that a bench starts without systemd.

import { readFileSync } from "node:fs";

/** For all that this process starts until it is disposed of; without what systemd fills in (`%S`), which would be a folder of that name here. */
export function unitEnvironment(program: "accel-agent" | "accel-central"): Disposable {
  const file = new URL(`../../systemd/${program}.service`, import.meta.url);
  const given = [...readFileSync(file, "utf8").matchAll(/^Environment="?(\w+)=([^"\n]+)"?$/gm)];
  if (given.length === 0) throw new Error(`the unit of ${program} has no environment`);
  for (const [, name = "", value = ""] of given)
    if (!value.includes("%")) process.env[name] = value;
  return {
    [Symbol.dispose]: () => {
      for (const [, name = ""] of given) delete process.env[name];
    },
  };
}
