// Completions of bash, zsh and fish for a program, from its table of commands and their help.

/** The options by which every command is told where to ask, and how to print: usage lines leave them out. */
const everywhere = new Set([
  "--api-url",
  "--config",
  "--help",
  "--instance",
  "--json",
  "--state-dir",
  "--token-file",
]);

/**
 * What can be typed after each command: its subcommands, and for each of them, or for the command where there are none, the options, and whether it takes a file
 * without an option. An option belongs to the usage lines that name it; one that none of them names, to those with a word in brackets such as [options], or to all.
 * Which options have a value, and for which that is a file or a directory, is the same in all of a command. Prose, which may speak of other commands, is left out.
 */
function wordsOf(program, { name, command }) {
  const lines = command.usage.split("\n");
  const usages = lines.filter((line) => line.startsWith(`${program} ${name}`));
  const described = lines.filter((line) => /^ {2}--/.test(line));
  const subcommandOf = (line) => {
    const word = line.slice(`${program} ${name} `.length).split(" ")[0] ?? "";
    return /^[a-z]+$/.test(word) ? word : "";
  };
  const matches = (pattern, from) => [
    ...new Set([...from.join("\n").matchAll(pattern)].map(([, option]) => option)),
  ];
  const optionsIn = (from) => matches(/(?<![\w-])(--[a-z][a-z0-9-]*)/g, from);
  const named = new Set(optionsIn(usages));
  const unnamed = [
    ...matches(/^ {2}(--[a-z][a-z0-9-]*)/gm, described).filter((option) => !named.has(option)),
    "--help",
  ];
  const isOpen = (line) => /\[[a-z]+\]/.test(line);
  const takesAll = (own) => own.some(isOpen) || !usages.some(isOpen);
  const placeOf = (subcommand, own) => ({
    subcommand,
    options: [
      ...new Set([
        ...optionsIn(own),
        ...unnamed.filter((option) => takesAll(own) || everywhere.has(option)),
      ]),
    ].toSorted(),
    takesFile: own.some((line) => /(?<!--[a-z0-9-]+ )\b(?:FILE|DIR)\b/.test(line)),
  });
  const subcommands = [...new Set(usages.map(subcommandOf))].filter((word) => word !== "");
  const own = (word) => usages.filter((line) => subcommandOf(line) === word);
  const told = [...usages, ...described];
  return {
    subcommands,
    places:
      subcommands.length === 0
        ? [placeOf("", usages)]
        : [placeOf("", []), ...subcommands.map((word) => placeOf(word, own(word)))],
    valueOptions: matches(/(?<![\w-])(--[a-z][a-z0-9-]*) [A-Z]/g, told).toSorted(),
    fileOptions: matches(
      /(?<![\w-])(--[a-z][a-z0-9-]*) (?:FILE|DIR|DIRECTORY)\b/g,
      told,
    ).toSorted(),
  };
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** Where the agents of a host beside the plain one have their settings: DIRECTORY/NAME/agent.yaml. */
const settingsDirectory = "/etc/accel-agent";

/** Writes the branches of a `case` of bash or zsh over "COMMAND SUBCOMMAND": what holds of the command, then of its subcommand. */
function branchesOf(program, commands, list) {
  const all = commands.map((each) => ({ name: each.name, ...wordsOf(program, each) }));
  return {
    commands: all
      .map(
        ({ name, subcommands, valueOptions, fileOptions }) =>
          `    ${name}) subcommands=${list(subcommands)} values=${list(valueOptions)} files=${list(fileOptions)} ;;`,
      )
      .join("\n"),
    places: all
      .flatMap(({ name, places }) =>
        places.map(
          ({ subcommand, options, takesFile }) =>
            `    ${quoted(`${name} ${subcommand}`)}) options=${list(options)}${takesFile ? " takes_file=1" : ""} ;;`,
        ),
      )
      .join("\n"),
  };
}

export function bashCompletion(program, commands, directory = settingsDirectory) {
  const branches = branchesOf(program, commands, (words) => quoted(words.join(" ")));
  const names = [...commands.map(({ name }) => name), "version", "--help"].join(" ");
  const fn = `_${program.replace("-", "_")}`;
  return `# bash completion of ${program}
${fn}() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} subcommand= subcommands= options='--help' values= files= takes_file= at
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ${quoted(names)} -- "$word"))
    return
  fi
  # To bash the = of --option=value is a word of its own.
  if [[ $word == = ]]; then word=
  elif [[ $before == = ]]; then before=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  case \${COMP_WORDS[1]} in
${branches.commands}
  esac
  for at in "\${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
    [[ " $subcommands " == *" $at "* ]] && subcommand=$at && break
  done
  case "\${COMP_WORDS[1]} $subcommand" in
${branches.places}
  esac
  if [[ $before == --instance ]]; then
    for at in ${directory}/*/agent.yaml; do
      at=\${at%/agent.yaml} at=\${at##*/}
      [[ $at != '*' && $at == "$word"* ]] && COMPREPLY+=("$at")
    done
  elif [[ $before == -* && " $files " == *" $before "* ]]; then COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames
  elif [[ $before == -* && " $values " == *" $before "* ]]; then :
  elif [[ -n $subcommands && -z $subcommand && $word != -* ]]; then COMPREPLY=($(compgen -W "$subcommands" -- "$word"))
  elif [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ -n $takes_file ]]; then COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames
  fi
}
complete -F ${fn} ${program}
`;
}

export function zshCompletion(program, commands, directory = settingsDirectory) {
  const names = commands.map(({ name, summary }) => quoted(`${name}:${summary}`)).join(" ");
  const branches = branchesOf(program, commands, (words) => `(${words.join(" ")})`);
  return `#compdef ${program}
local -a commands subcommands options values files
local subcommand takes_file at before=$words[CURRENT-1]
commands=(${names} 'version:print the version')
if ((CURRENT == 2)); then
  _describe 'command' commands
  return
fi
options=(--help)
case $words[2] in
${branches.commands}
esac
for at in $words[3,CURRENT-1]; do
  if ((\${subcommands[(Ie)$at]})); then
    subcommand=$at
    break
  fi
done
case "$words[2] $subcommand" in
${branches.places}
esac
if [[ $words[CURRENT] == --*=* ]]; then
  before=\${words[CURRENT]%%=*}
  compset -P '*='
fi
if [[ $before == --instance ]]; then compadd -- ${directory}/*/agent.yaml(N:h:t)
elif ((\${files[(Ie)$before]})); then _files
elif ((\${values[(Ie)$before]})); then return 1
elif [[ -n $subcommands && -z $subcommand && $words[CURRENT] != -* ]]; then compadd -- $subcommands
elif [[ $words[CURRENT] == -* ]]; then compadd -- $options
elif [[ -n $takes_file ]]; then _files
fi
`;
}

/** What fish offers as the value of an option. */
function valueOf(option, { fileOptions, valueOptions }, directory) {
  if (option === "--instance")
    return ` -x -a '(for at in ${directory}/*/agent.yaml; basename (dirname $at); end)'`;
  if (fileOptions.includes(option)) return " -r -F";
  return valueOptions.includes(option) ? " -x" : "";
}

export function fishCompletion(program, commands, directory = settingsDirectory) {
  const at = `__${program.replace("-", "_")}_at`;
  const lines = [
    `# fish completion of ${program}`,
    `# Whether the words before the cursor are those of a command, and the first of its subcommands among them is this one; '' is none.
function ${at} -a command subcommand subcommands
    set -l words (commandline -opc)
    test "$words[2]" = "$command"; or return 1
    set -l chosen ''
    for word in $words[3..-1]
        if contains -- $word (string split ' ' -- $subcommands)
            set chosen $word
            break
        end
    end
    test "$chosen" = "$subcommand"
end`,
    `complete -c ${program} -f`,
  ];
  for (const each of commands) {
    const words = wordsOf(program, each);
    const { subcommands, places } = words;
    lines.push(
      `complete -c ${program} -n __fish_use_subcommand -a ${each.name} -d ${quoted(each.summary)}`,
    );
    const within = (subcommand) =>
      `-n ${quoted(`${at} ${each.name} '${subcommand}' '${subcommands.join(" ")}'`)}`;
    if (subcommands.length > 0)
      lines.push(`complete -c ${program} ${within("")} -a ${quoted(subcommands.join(" "))}`);
    for (const { subcommand, options, takesFile } of places) {
      if (takesFile) lines.push(`complete -c ${program} ${within(subcommand)} -F`);
      for (const option of options)
        lines.push(
          `complete -c ${program} ${within(subcommand)} -l ${option.slice(2)}${valueOf(option, words, directory)}`,
        );
    }
  }
  lines.push(`complete -c ${program} -n __fish_use_subcommand -a version -d 'print the version'`);
  return `${lines.join("\n")}\n`;
}
