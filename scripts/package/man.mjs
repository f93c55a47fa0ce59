// The man page of a program, from its table of commands and their help.

/** Text as roff takes it: no line of it is a request, and no character an escape. */
const roff = (text) =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll(/^([.'])/gm, "\\&$1");

/** Writes the page of `accel-agent` or `accel-central`, section 8. `commands` is a list of {name, summary, command}. */
export function manPage({ program, summary, version, date, commands, files }) {
  // The foot of a page has room for a release, and not for the commit behind it.
  const [release] = version.split(/[+~]/);
  const page = [
    `.TH ${program.toUpperCase()} 8 "${date}" "${program} ${roff(release)}" "System administration"`,
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
    page.push(
      `.SS ${program} ${name}`,
      roff(command.summary),
      ".PP",
      ".nf",
      roff(command.usage),
      ".fi",
    );
  page.push(
    ".SH EXIT STATUS",
    "0: done. 1: failed. 2: bad usage or settings. 3: not proved yet, or not complete.",
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
