// The help of every command: what its first lines name, the lines below explain.

import { expect, test } from "vitest";
import { programs } from "../../src/start/commands.ts";

const commands = Object.entries(programs).flatMap(([which, of]) =>
  Object.entries(of).map(([name, { load }]) => ({ command: `accel-${which} ${name}`, load })),
);

test.each(commands)("each option in the usage of $command has a line", async ({ load }) => {
  const lines = (await load()).usage.split("\n");
  const named = lines
    .slice(0, lines.indexOf(""))
    .flatMap((line) => line.match(/--[a-z][a-z0-9-]*/g) ?? []);
  const explained = lines.flatMap((line) => /^ {2}(--[a-z][a-z0-9-]*)/.exec(line)?.[1] ?? []);
  expect(explained).toEqual(expect.arrayContaining([...new Set(named)]));
});
