// Completions of bash, zsh and fish for a program, from its table of commands and their help.

/** What can be typed after each command: the words of its usage lines that are no placeholders, and its options. */
function wordsOf(program, { name, command }) {
  const usages = command.usage.split("\n").filter((line) => line.startsWith(`${program} ${name} `));
  const subcommands = usages.flatMap((line) => {
    const word = line.slice(`${program} ${name} `.length).split(" ")[0] ?? "";
    return /^[a-z]+$/.test(word) ? [word] : [];
  });
  const options = command.usage.match(/(?<![\w-])--[a-z][a-z-]*/g) ?? [];
  return {
    subcommands: [...new Set(subcommands)],
    options: [...new Set([...options, "--help"])].toSorted(),
  };
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
/** These options name a file or a directory. */
const fileOptions = [
  "--config",
  "--state-dir",
  "--token-file",
  "--code-file",
  "--secret-file",
  "--ca-file",
  "--out",
  "--site",
  "--state",
  "--in",
];

/** Where the agents of a host beside the plain one have their settings: DIRECTORY/NAME/agent.yaml. */
const settingsDirectory = "/etc/accel-agent";

export function bashCompletion(program, commands, directory = settingsDirectory) {
  const cases = commands.map((each) => {
    const { subcommands, options } = wordsOf(program, each);
    return `    ${each.name}) subcommands=${quoted(subcommands.join(" "))} options=${quoted(options.join(" "))} ;;`;
  });
  const names = [...commands.map(({ name }) => name), "version", "--help"].join(" ");
  const fn = `_${program.replace("-", "_")}`;
  return `# bash completion of ${program}
${fn}() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} subcommands= options=
  COMPREPLY=()
  case $before in
    ${fileOptions.join(" | ")}) COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames; return ;;
    --instance)
      local at
      for at in ${directory}/*/agent.yaml; do
        at=\${at%/agent.yaml} at=\${at##*/}
        [[ $at != '*' && $at == "$word"* ]] && COMPREPLY+=("$at")
      done
      return ;;
  esac
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ${quoted(names)} -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${cases.join("\n")}
  esac
  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$word"))
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
    const { subcommands, options } = wordsOf(program, each);
    return `    ${each.name}) subcommands=(${subcommands.join(" ")}) options=(${options.join(" ")}) ;;`;
  });
  return `#compdef ${program}
local -a commands subcommands options
commands=(${names} 'version:print the version')
if ((CURRENT == 2)); then
  _describe 'command' commands
  return
fi
case $words[2] in
${cases.join("\n")}
esac
case $words[CURRENT-1] in
  ${fileOptions.join("|")}) _files; return ;;
  --instance) compadd -- ${directory}/*/agent.yaml(N:h:t); return ;;
esac
if [[ $words[CURRENT] == -* ]]; then compadd -- $options
elif ((CURRENT == 3 && $#subcommands)); then compadd -- $subcommands
else _files
fi
`;
}

/** What fish offers as the value of an option. */
function valueOf(option, directory) {
  if (option === "--instance")
    return ` -x -a '(for at in ${directory}/*/agent.yaml; basename (dirname $at); end)'`;
  return fileOptions.includes(option) ? " -r -F" : "";
}

export function fishCompletion(program, commands, directory = settingsDirectory) {
  const lines = [`# fish completion of ${program}`, `complete -c ${program} -f`];
  for (const each of commands) {
    const { subcommands, options } = wordsOf(program, each);
    lines.push(
      `complete -c ${program} -n __fish_use_subcommand -a ${each.name} -d ${quoted(each.summary)}`,
    );
    const within = `-n '__fish_seen_subcommand_from ${each.name}'`;
    for (const word of subcommands) lines.push(`complete -c ${program} ${within} -a ${word}`);
    for (const option of options)
      lines.push(
        `complete -c ${program} ${within} -l ${option.slice(2)}${valueOf(option, directory)}`,
      );
  }
  lines.push(`complete -c ${program} -n __fish_use_subcommand -a version -d 'print the version'`);
  return `${lines.join("\n")}\n`;
}
