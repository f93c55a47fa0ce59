#!/usr/bin/env node
// Both programs begin here, on any Node: one that is too old is told which one is needed, before anything that it could not read.
//
// So this file is JavaScript that each of them reads, and a CommonJS script (`src/package.json`): Node 18 and 20 refuse a module that ends in `.ts`, but run
// such a script. The folders beside it are modules, by a `package.json` each.

const [majorMin, minorMin] = [26, 10];
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

if (major > majorMin || (major === majorMin && minor >= minorMin))
  void import("./start/program.ts");
else {
  process.stderr.write(
    `accel-agent and accel-central need Node ${majorMin}.${minorMin} or later; ${process.execPath} is ${process.version}.\n`,
  );
  process.exitCode = 1;
}
