// accel-agent and accel-central: picks the command, imports it lazily, maps failures to exit codes; nothing else.

import { readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { columns, describeFailure, exitCodeOf, exitStatusLine } from "../base/command.ts";
import { isJournal, withPriority } from "../base/journal-priority.ts";
import { isSuccessor } from "../base/succession.ts";
import { nearest } from "../core/nearest.ts";
import { programs, type LazyCommand } from "./commands.ts";

// First of all: a SIGHUP that arrives before the program is up must not end it.
const reloads: (() => void)[] = [];
process.on("SIGHUP", () => {
  for (const reload of reloads) reload();
});
const stop = new AbortController();
for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => stop.abort(name));
// Whoever read what we say has left (`… | head`): there is nobody to go on for.
process.stdout.on("error", () => stop.abort("nobody reads"));
// The agent that this one succeeds is to end, and until then is listened to.
if (!isSuccessor(process.env)) {
  // A parent that started us over IPC and died took the terminal with it: nobody else will stop us.
  process.once("disconnect", () => stop.abort("parent gone"));
  process.channel?.unref();
}

/** The program that was started: `src/main.ts` or `dist/main.js`, whatever links led there. */
const entry = realpathSync(process.argv[1] ?? "");

function version(): string {
  const { version: text } = JSON.parse(
    readFileSync(join(dirname(entry), "../package.json"), "utf8"),
  ) as { version: string };
  return text;
}

function help(program: string, commands: Readonly<Record<string, LazyCommand>>): string {
  const rows = Object.entries(commands).map(([name, { summary }]) => [name, summary] as const);
  return `${program} <command> [options]\n\n${columns([...rows, ["version", "print the version"]])}\nEvery command has --help. ${exitStatusLine()}\n`;
}

/** Returns the exit status of `version`, which takes no arguments but --help. */
function sayVersion(program: string, args: readonly string[], out: (text: string) => void): number {
  const [first] = args;
  const isHelp = args.includes("--help") || args.includes("-h");
  if (first !== undefined && !isHelp) {
    process.stderr.write(
      `${program}: version: unexpected argument '${first}'\n  See ${program} version --help.\n`,
    );
    return 2;
  }
  out(isHelp ? `Prints the version.\n\n${program} version\n` : `${program} ${version()}\n`);
  return 0;
}

/** Says which command was meant by one that there is not: systemd starts and ends what runs. */
function meantBy(
  name: string,
  args: readonly string[],
  program: string,
  names: readonly string[],
): string {
  if (["start", "stop", "restart", "reload"].includes(name)) {
    // `restart shop` is meant for that one, with or without the option. Central has no instances.
    const [first = "", second = ""] = args;
    const instance = first === "--instance" ? second : first;
    const isNamed = program === "accel-agent" && /^[a-z0-9]/i.test(instance);
    const unit = isNamed ? `${program}@${instance}` : program;
    return `; systemd does that: systemctl ${name} ${unit}`;
  }
  const near = nearest(name, names);
  return near === undefined ? "" : `; did you mean ${near}?`;
}

async function main(): Promise<number> {
  const invoked = basename(process.argv[1] ?? "");
  const named = invoked.startsWith("accel-")
    ? [invoked.slice(6), ...process.argv.slice(2)]
    : process.argv.slice(2);
  const [which, name, ...args] = named;
  const out = (text: string): void => void process.stdout.write(text);
  if (which !== "agent" && which !== "central") {
    process.stderr.write("usage: main.ts agent|central <command> [options]\n");
    return 2;
  }
  const program = `accel-${which}`;
  const commands = programs[which];
  const [asked] = args;
  if (name === "help" && asked !== undefined && Object.hasOwn(commands, asked)) {
    const command = await commands[asked]?.load();
    out(`${command?.summary}\n\n${command?.usage}\n`);
    return 0;
  }
  if (name === "help" && asked === "version") return sayVersion(program, ["--help"], out);
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    (name === undefined ? process.stderr : process.stdout).write(help(program, commands));
    return name === undefined ? 2 : 0;
  }
  if (["version", "--version", "-v", "-V"].includes(name)) return sayVersion(program, args, out);
  const lazy = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (lazy === undefined) {
    process.stderr.write(
      `${program}: unknown command ${name}${meantBy(name, args, program, Object.keys(commands))}\n  See ${program} --help.\n`,
    );
    return 2;
  }
  try {
    const command = await lazy.load();
    if (args.includes("--help") || args.includes("-h"))
      out(`${command.summary}\n\n${command.usage}\n`);
    else
      await command.run({
        version: version(),
        program: entry,
        args,
        out,
        colour: process.stdout.isTTY && process.env["NO_COLOR"] === undefined,
        env: process.env,
        stop: stop.signal,
        onReload: (reload) => void reloads.push(reload),
      });
    return 0;
  } catch (error) {
    const failure = describeFailure(program, name, error);
    process.stderr.write(isJournal(2, process.env) ? withPriority("error", failure) : failure);
    return exitCodeOf(error);
  }
}

// Whatever ends before its command has, has failed: Node itself would say 0.
process.exitCode = 1;
process.exitCode = await main();
