// Completions of bash, zsh and fish for a program, from its table of commands and their help.

/**
 * What can be typed after each command: the words of its usage lines that are no placeholders, its options, those of them that name a file or a directory, and whether
 * the command takes one without an option. Prose, which may speak of other commands, is left out.
 */
function wordsOf(program, { name, command }) {
  const lines = command.usage.split("\n");
  const usages = lines.filter((line) => line.startsWith(`${program} ${name}`));
  const subcommands = usages.flatMap((line) => {
    const word = line.slice(`${program} ${name} `.length).split(" ")[0] ?? "";
    return /^[a-z]+$/.test(word) ? [word] : [];
  });
  const told = [...usages, ...lines.filter((line) => /^ {2}--/.test(line))].join("\n");
  const matches = (pattern) => [
    ...new Set([...told.matchAll(pattern)].map(([, option]) => option)),
  ];
  return {
    subcommands: [...new Set(subcommands)],
    options: [...new Set([...matches(/(?<![\w-])(--[a-z][a-z0-9-]*)/g), "--help"])].toSorted(),
    fileOptions: matches(/(--[a-z][a-z0-9-]*) (?:FILE|DIR|DIRECTORY)\b/g).toSorted(),
    takesFile: usages.some((line) => /(?<!--[a-z0-9-]+ )\b(?:FILE|DIR)\b/.test(line)),
  };
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** Where the agents of a host beside the plain one have their settings: DIRECTORY/NAME/agent.yaml. */
const settingsDirectory = "/etc/accel-agent";

export function bashCompletion(program, commands, directory = settingsDirectory) {
  const cases = commands.map((each) => {
    const { subcommands, options, fileOptions } = wordsOf(program, each);
    return `    ${each.name}) subcommands=${quoted(subcommands.join(" "))} options=${quoted(options.join(" "))} files=${quoted(` ${fileOptions.join(" ")} `)} ;;`;
  });
  const names = [...commands.map(({ name }) => name), "version", "--help"].join(" ");
  const fn = `_${program.replace("-", "_")}`;
  return `# bash completion of ${program}
${fn}() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} subcommands= options= files=
  COMPREPLY=()
  if [[ $before == --instance ]]; then
    local at
    for at in ${directory}/*/agent.yaml; do
      at=\${at%/agent.yaml} at=\${at##*/}
      [[ $at != '*' && $at == "$word"* ]] && COMPREPLY+=("$at")
    done
    return
  fi
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ${quoted(names)} -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${cases.join("\n")}
  esac
  if [[ $files == *" $before "* ]]; then COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames
  elif [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif ((COMP_CWORD == 2)) && [[ -n $subcommands ]]; then COMPREPLY=($(compgen -W "$subcommands" -- "$word"))
  else COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames
  fi
}
complete -F ${fn} ${program}
`;
}

export function zshCompletion(program, commands, directory = settingsDirectory) {
  const names = commands.map(({ name, summary }) => quoted(`${name}:${summary}`)).join(" ");
  const cases = commands.map((each) => {
    const { subcommands, options, fileOptions } = wordsOf(program, each);
    return `    ${each.name}) subcommands=(${subcommands.join(" ")}) options=(${options.join(" ")}) files=(${fileOptions.join(" ")}) ;;`;
  });
  return `#compdef ${program}
local -a commands subcommands options files
commands=(${names} 'version:print the version')
if ((CURRENT == 2)); then
  _describe 'command' commands
  return
fi
case $words[2] in
${cases.join("\n")}
esac
if ((\${files[(Ie)$words[CURRENT-1]]})); then
  _files
  return
fi
if [[ $words[CURRENT-1] == --instance ]]; then
  compadd -- ${directory}/*/agent.yaml(N:h:t)
  return
fi
if [[ $words[CURRENT] == -* ]]; then compadd -- $options
elif ((CURRENT == 3 && $#subcommands)); then compadd -- $subcommands
else _files
fi
`;
}

/** What fish offers as the value of an option. */
function valueOf(option, fileOptions, directory) {
  if (option === "--instance")
    return ` -x -a '(for at in ${directory}/*/agent.yaml; basename (dirname $at); end)'`;
  return fileOptions.includes(option) ? " -r -F" : "";
}

export function fishCompletion(program, commands, directory = settingsDirectory) {
  const lines = [`# fish completion of ${program}`, `complete -c ${program} -f`];
  for (const each of commands) {
    const { subcommands, options, fileOptions, takesFile } = wordsOf(program, each);
    lines.push(
      `complete -c ${program} -n __fish_use_subcommand -a ${each.name} -d ${quoted(each.summary)}`,
    );
    const within = `-n '__fish_seen_subcommand_from ${each.name}'`;
    for (const word of subcommands) lines.push(`complete -c ${program} ${within} -a ${word}`);
    if (takesFile) lines.push(`complete -c ${program} ${within} -F`);
    for (const option of options)
      lines.push(
        `complete -c ${program} ${within} -l ${option.slice(2)}${valueOf(option, fileOptions, directory)}`,
      );
  }
  lines.push(`complete -c ${program} -n __fish_use_subcommand -a version -d 'print the version'`);
  return `${lines.join("\n")}\n`;
}
