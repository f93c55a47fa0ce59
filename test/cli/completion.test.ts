// What a person sees after Tab, in the shells themselves: they are started in a terminal, the completion that the packages bring is loaded, and keys are typed.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

// Plain JavaScript, without types.
const { bashCompletion, fishCompletion, zshCompletion } = (await import(
  String(new URL("../../scripts/package/completion.mjs", import.meta.url))
)) as Record<string, (program: string, commands: readonly unknown[], directory: string) => string>;
const { programs } = await import("../../src/start/commands.ts");

const has = (tool: string, option = "--version"): boolean =>
  spawnSync(tool, [option]).error === undefined;
const dir = tempDir();
const etc = join(dir.path, "etc");
const socket = join(dir.path, "tmux");
const tmux = (...args: readonly string[]): string =>
  execFileSync("tmux", ["-S", socket, ...args], { encoding: "utf8" });

beforeAll(async () => {
  for (const [which, program] of [
    ["agent", "accel-agent"],
    ["central", "accel-central"],
  ] as const) {
    const commands = await Promise.all(
      Object.entries(programs[which]).map(async ([name, { summary, load }]) => ({
        name,
        summary,
        command: await load(),
      })),
    );
    mkdirSync(join(dir.path, "zsh"), { recursive: true });
    mkdirSync(join(dir.path, "bin"), { recursive: true });
    writeFileSync(
      join(dir.path, `${program}.bash`),
      bashCompletion?.(program, commands, etc) ?? "",
    );
    writeFileSync(
      join(dir.path, `${program}.fish`),
      fishCompletion?.(program, commands, etc) ?? "",
    );
    writeFileSync(
      join(dir.path, "zsh", `_${program}`),
      zshCompletion?.(program, commands, etc) ?? "",
    );
    writeFileSync(join(dir.path, "bin", program), "#!/bin/sh\n", { mode: 0o755 });
  }
  writeFileSync(join(dir.path, "settings-of-mine.yaml"), "");
  mkdirSync(join(etc, "second-edge"), { recursive: true });
  writeFileSync(join(etc, "second-edge/agent.yaml"), "");
  mkdirSync(join(dir.path, "second-folder"));
});
afterAll(() => {
  spawnSync("tmux", ["-S", socket, "kill-server"]);
  dir[Symbol.dispose]();
});

const shells = {
  bash: {
    start: ["bash", "--norc", "--noprofile"],
    load: "source accel-agent.bash; source accel-central.bash",
  },
  zsh: {
    start: ["zsh", "-f"],
    load: "fpath=($PWD/zsh $fpath); autoload -U compinit; compinit -u -d $PWD/dump",
  },
  fish: {
    start: ["fish", "--no-config"],
    load: "source accel-agent.fish; source accel-central.fish",
  },
} as const;

/** Typed behind Tab, it stands behind what the shell made of the line. */
const end = "|";

/** What is typed before Tab, and what the screen shows then; with `end`, where there is nothing to offer. */
const typed: readonly (readonly [keys: string, shown: RegExp, behind?: string])[] = [
  ["accel-agent stat", /accel-agent status/],
  ["accel-agent doct", /accel-agent doctor/],
  ["accel-agent join --code", /accel-agent join --code-file/],
  ["accel-agent join --name", /accel-agent join --name16/],
  ["accel-agent bots che", /accel-agent bots check/],
  ["accel-central restore second-fo", /accel-central restore second-folder/],
  ["accel-central migrate --from second-fo", /accel-central migrate --from second-folder/],
  ["accel-central rek", /accel-central rekey/],
  ["accel-central restore --dri", /accel-central restore --drill/],
  ["accel-central site enr", /accel-central site enrol/],
  ["accel-agent status --instance sec", /accel-agent status --instance second-edge/],
  ["accel-agent check --config settings-of", /accel-agent check --config settings-of-mine\.yaml/],
  ["accel-agent check --config=settings-of", /accel-agent check --config=settings-of-mine\.yaml/],
  ["accel-agent check --instance=sec", /accel-agent check --instance=second-edge/],
  // Options are those of the subcommand, wherever it stands.
  ["accel-agent logs tail --fol", /accel-agent logs tail --follow/],
  ["accel-agent logs --config x tail --fol", /accel-agent logs --config x tail --follow/],
  ["accel-agent logs backlog --fol", /accel-agent logs backlog --fol\|$/, end],
  ["accel-agent logs backlog --js", /accel-agent logs backlog --json/],
  ["accel-agent logs --conf", /accel-agent logs --config/],
  ["accel-agent cache search x --lim", /accel-agent cache search x --limit/],
  ["accel-agent cache clear x --lim", /accel-agent cache clear x --lim\|$/, end],
  // check is a command, too.
  ["accel-agent cache check --de", /accel-agent cache check --de\|$/, end],
  ["accel-central rollout start --can", /accel-central rollout start --canary/],
  ["accel-central rollout pause 1 --can", /accel-central rollout pause 1 --can\|$/, end],
  ["accel-central rollout pause 1 --rea", /accel-central rollout pause 1 --reason/],
  // Files stand where an argument is one.
  ["accel-central bots import a bad b settings-of", /import a bad b settings-of-mine\.yaml/],
  ["accel-agent status settings-of", /accel-agent status settings-of\|$/, end],
  [
    "accel-agent logs tail --lines settings-of",
    /accel-agent logs tail --lines settings-of\|$/,
    end,
  ],
  ["accel-central clear a settings-of", /accel-central clear a settings-of\|$/, end],
];

describe.each(Object.entries(shells))("%s", (name, { start, load }) => {
  const missing = ["tmux", name].filter((tool) => !has(tool, tool === "tmux" ? "-V" : "--version"));
  test.skipIf(missing.length > 0)(
    "Tab completes commands, their words, options and files (needs tmux, bash, zsh, fish)",
    async () => {
      const path = `${join(dir.path, "bin")}:${process.env["PATH"] ?? ""}`;
      const environment = ["-e", `PATH=${path}`, "-e", `HOME=${dir.path}`, "-e", "PS1=$ "];
      tmux(
        "-f",
        "/dev/null",
        "new-session",
        "-d",
        "-x",
        "160",
        "-y",
        "50",
        "-s",
        name,
        "-c",
        dir.path,
        ...environment,
        ...start,
      );
      const screen = (): string => tmux("capture-pane", "-p", "-t", name);
      const type = (text: string): string => tmux("send-keys", "-t", name, "-l", text);
      const press = (key: string): string => tmux("send-keys", "-t", name, key);
      // What is typed before is lost in part, such as a file that was to be loaded.
      await until("there is a prompt", () => /[$#%>]$/.test(screen().trimEnd()));
      type(`cd ${dir.path}; ${load}; echo rea''dy`);
      press("Enter");
      await until("the shell is ready", () => /^ready$/m.test(screen()));
      const lastLine = (): string => screen().trimEnd().split("\n").at(-1) ?? "";
      for (const [keys, shown, behind] of typed) {
        // A shell drops what is typed before it has made its new prompt, all or some of it, and an interrupt while it completes.
        await until("it is typed", async () => {
          await until("there is a new prompt", async () => {
            press("C-c");
            await new Promise((resolve) => setTimeout(resolve, 100));
            return !lastLine().includes("accel-");
          });
          type(keys);
          const isTyped = (): void => expect(lastLine()).toContain(keys);
          return vi.waitFor(isTyped, { timeout: 5_000, interval: 15 }).then(
            () => true,
            () => false,
          );
        });
        press("Tab");
        if (behind !== undefined) type(behind);
        await vi.waitFor(() => expect(lastLine()).toMatch(shown), {
          timeout: 20_000,
          interval: 50,
        });
      }
    },
    120_000,
  );
});
