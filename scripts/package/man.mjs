// The man page of a program, from its table of commands and their help.

import { exitStatuses } from "../../src/base/command.ts";

/** Text as roff takes it: no line of it is a request, and no character an escape. */
const roff = (text) =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll(/^([.'])/gm, "\\&$1");

/** An option or a word of a usage, and what it means, in two columns; further lines of the second column begin with at least so many blanks. */
const row = /^ {2}(\S.*?) {2,}(\S.*)$/;
const more = /^ {6,}(\S.*)$/;

/** Writes the help of a command: lines of usage as they are, rows as tagged paragraphs, and everything else filled. */
function usageOf(program, usage) {
  return usage.split(/\n\n/).flatMap((block) => {
    const lines = block.split("\n");
    if (lines.every((line) => line.includes(`${program} `) && !line.endsWith(".")))
      return [".PP", ".nf", ...lines.map(roff), ".fi"];
    if (!lines.some((line) => row.test(line))) return [".PP", ...lines.map((line) => roff(line))];
    return lines.flatMap((line) => {
      const [, name, text] = row.exec(line) ?? [];
      if (name !== undefined) return [".TP", `.B ${roff(name)}`, roff(text)];
      return [roff(more.exec(line)?.[1] ?? line)];
    });
  });
}

/** Writes the page of `accel-agent` or `accel-central`, section 8. `commands` is a list of {name, summary, command}. */
export function manPage({ program, summary, version, date, commands, files }) {
  // The foot of a page has room for a release, and not for the commit behind it.
  const [release] = version.split(/[+~]/);
  const page = [
    `.TH ${program.toUpperCase()} 8 "${date}" "${program} ${roff(release)}" "System administration"`,
    // Neither a name of ours nor a path is cut in two, and no line is stretched.
    ".nh",
    ".ad l",
    ".SH NAME",
    `${program} \\- ${roff(summary)}`,
    ".SH SYNOPSIS",
    `.B ${program}`,
    ".I command",
    "[options]",
    ".SH COMMANDS",
    ...commands.flatMap(({ name, summary: line }) => [".TP", `.B ${name}`, roff(line)]),
    ".TP",
    ".B version",
    "print the version",
  ];
  for (const { name, command } of commands)
    page.push(`.SS ${program} ${name}`, roff(command.summary), ...usageOf(program, command.usage));
  page.push(
    ".SH EXIT STATUS",
    ...exitStatuses.flatMap(({ status, means }) => [".TP", `.B ${status}`, roff(means)]),
    ".SH FILES",
    ...files.flatMap(([path, text]) => [".TP", `.I ${roff(path)}`, roff(text)]),
    ".SH VERSION",
    roff(version),
    ".SH SEE ALSO",
    ".BR systemctl (1),",
    ".BR journalctl (1);",
    "the documents in /usr/share/doc/accel\\-common.",
    "",
  );
  return page.join("\n");
}
