// `accel-central rollout`: a release over a customer's hosts, canary first; what became of it; back.

import { readArgs, type Command, type CommandContext, unknownVerb } from "../base/command.ts";
import { duration } from "../base/settings-fields.ts";
import { AccelError } from "../core/faults.ts";
import {
  ask,
  callProgram,
  controlOptions,
  controlUsage,
  renderFacts,
  socketPath,
} from "./control.ts";
import { idGiven, operatorName } from "./operator.ts";
import { hostShown, hostNameText } from "./central-status-text.ts";
import { said } from "./status-words.ts";
import { plain, textTable, type Row } from "./text.ts";

const options = {
  ...controlOptions,
  customer: { type: "string" },
  release: { type: "string" },
  tag: { type: "string" },
  canary: { type: "string" },
  wave: { type: "string" },
  soak: { type: "string" },
  grace: { type: "string" },
  install: { type: "string" },
  silence: { type: "string" },
  within: { type: "string" },
  restarts: { type: "string" },
  errors: { type: "string" },
  misses: { type: "string" },
  reason: { type: "string" },
} as const;

type Values = ReturnType<typeof readArgs<typeof options>>["values"];
type Verb = "start" | "status" | "list" | "pause" | "resume" | "back";
type Name = Exclude<keyof Values, keyof typeof controlOptions>;

const limitNames = [
  "canary",
  "wave",
  "soak",
  "grace",
  "install",
  "silence",
  "within",
  "restarts",
  "errors",
  "misses",
] as const satisfies readonly Name[];

/** The options of each verb beside those of every command. */
const optionsOf: Readonly<Record<Verb, readonly Name[]>> = {
  start: ["customer", "release", "tag", ...limitNames],
  status: [],
  list: ["customer"],
  pause: ["reason"],
  resume: [],
  back: ["reason"],
};

export const rolloutCommand: Command = {
  summary:
    "Rolls a release over a customer's hosts: canary first, then in waves. It goes back by itself where something speaks against it.",
  usage: [
    "accel-central rollout start --customer ID --release VERSION [--tag TAG] [limits]",
    "accel-central rollout status [ROLLOUT]",
    "accel-central rollout list [--customer ID]",
    "accel-central rollout pause ROLLOUT [--reason TEXT]",
    "accel-central rollout resume ROLLOUT",
    "accel-central rollout back ROLLOUT [--reason TEXT]",
    "",
    "  --customer ID     whose hosts",
    "  --release VERSION the version of the packages, as the hosts' repository has it",
    "  --tag TAG         only hosts of sites with this tag (default: all of the customer)",
    "  --canary N        how many hosts get it first (default 1)",
    "  --wave PERCENT    how many get it at a time after that, of all hosts (default 20)",
    "  --soak TIME       how long each runs it without a bad sign (default 10min)",
    "  --grace TIME      how long a host may warn of what it did not before, or not be ready (default 1min)",
    "  --install TIME    how long a host may take until it runs what it is told to (default 10min)",
    "  --silence TIME    how long a host may be silent before it counts as lost (default 1min)",
    "  --within TIME     how long further hosts get it (default 1d)",
    "  --restarts N      how often the agent may start again during the soak (default 0)",
    "  --errors PERCENT  by how much the share of answers of 500 and more may rise (default 2)",
    "  --misses N        pause when so many hosts could not install it (default 3)",
    "  --reason TEXT     what `status` and the audit trail are to say",
    controlUsage,
    "",
    "ROLLOUT is its number in `rollout list`; `status` without it shows the last one. A customer has one at a time.",
    "Hosts take part that allow it (`systemctl enable --now accel-agent-rollout.path` on the host) and whose packages are not held.",
    "pause: no further host is asked. Hosts that have the release keep it and are watched; what speaks against it sends it back all the same.",
    "back: every host that has the release gets the version that it had.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(context.args, options, 2, optionsOf);
    const [given = "", rollout] = positionals;
    const verb = verbOf(given);
    for (const name of Object.keys(values) as (keyof Values)[])
      if (!(name in controlOptions) && !optionsOf[verb].some((one) => one === name))
        throw new AccelError("USAGE", `--${name} does not go with rollout ${verb}`);
    const takesRollout = verb !== "start" && verb !== "list";
    if (rollout !== undefined && !takesRollout)
      throw new AccelError("USAGE", `rollout ${verb} takes no number`);
    if (rollout === undefined && takesRollout && verb !== "status")
      throw new AccelError("USAGE", `rollout ${verb} takes the number of a rollout`);
    const path = socketPath("accel-central", values);
    const id = idGiven(`rollout ${verb}`, rollout);
    if (verb === "start") return start(path, values, context);
    if (verb === "status") return status(path, id, values, context);
    if (verb === "list") return list(path, values, context);
    const asked = {
      operator: operatorName(context.env),
      rollout_id: id,
      ...(values.reason !== undefined && { reason: values.reason }),
    };
    show(await ask(path, `rollout-${verb}`, asked, context), values, context);
  },
};

function verbOf(given: string): Verb {
  const verb = (Object.keys(optionsOf) as Verb[]).find((one) => one === given);
  if (verb === undefined) throw unknownVerb("rollout", given, Object.keys(optionsOf));
  return verb;
}

async function start(path: string, values: Values, context: CommandContext): Promise<void> {
  const { release, tag } = values;
  const customer = idGiven("--customer", values.customer);
  if (customer === undefined || release === undefined)
    throw new AccelError("USAGE", "rollout start takes --customer ID and --release VERSION");
  const asked = {
    operator: operatorName(context.env),
    customer_id: customer,
    release,
    ...(tag !== undefined && { tag }),
    limits: limitsOf(values),
  };
  show(await ask(path, "rollout-start", asked, context), values, context);
}

function limitsOf(values: Values): Readonly<Record<string, number>> {
  const numbers = {
    canary: count("--canary", values.canary),
    wave_percent: count("--wave", values.wave),
    soak_ms: time("--soak", values.soak),
    grace_ms: time("--grace", values.grace),
    install_ms: time("--install", values.install),
    silence_ms: time("--silence", values.silence),
    bound_ms: time("--within", values.within),
    restarts: count("--restarts", values.restarts),
    errors_percent: share("--errors", values.errors),
    misses: count("--misses", values.misses),
  };
  return Object.fromEntries(
    Object.entries(numbers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  );
}

function count(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text))
    throw new AccelError("USAGE", `${option} takes a number, not ${text}`);
  return Number(text);
}

function share(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,3}(?:\.\d{1,6})?$/.test(text))
    throw new AccelError("USAGE", `${option} takes a number of percent, not ${text}`);
  return Number(text);
}

function time(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const read = duration("1s", "30d")(text);
  if (!read.ok) throw new AccelError("USAGE", `${option} ${text}: ${read.reason}`);
  return read.value;
}

async function list(path: string, values: Values, { out, stop }: CommandContext): Promise<void> {
  const customer = idGiven("--customer", values.customer);
  const asked = customer === undefined ? {} : { customer_id: customer };
  const rows: Row[] = [];
  for await (const row of callProgram(path, "rollout-list", asked, stop)) rows.push(Object(row));
  const names = ["id", "customer_id", "release", "tag", "state", "when_started", "reason"];
  out(
    values.json === true
      ? `${JSON.stringify(rows, null, 2)}\n`
      : textTable(rows, names, "no rollouts"),
  );
}

async function status(
  path: string,
  id: number | undefined,
  { json }: Values,
  context: CommandContext,
): Promise<void> {
  const asked = id === undefined ? {} : { rollout_id: id };
  const rows: Row[] = [];
  for await (const row of callProgram(path, "rollout-status", asked, context.stop))
    rows.push(Object(row));
  const [head = {}, ...hosts] = rows;
  if (json === true) context.out(`${JSON.stringify({ ...head, hosts }, null, 2)}\n`);
  else context.out(rolloutStatusText(head, hosts));
}

/** `hosts` as central gives them. Exported for its test. */
export function rolloutStatusText(head: Row, hosts: readonly Row[]): string {
  const { hosts: _, ...facts } = head;
  const names = ["host", "had", "wants", "has", "state", "since", "reason"];
  const rows = hosts.map((one) => {
    const name = hostNameText(one);
    const id = said(one["instance_id"]).slice(0, hostShown);
    return { ...one, host: `${said(one["deployment_site_id"])}/${name === "–" ? id : name}` };
  });
  return `${plainFacts(facts)}\n${textTable(rows, names, "no hosts")}`;
}

const plainFacts = (facts: object): string =>
  renderFacts(facts)
    .split("\n")
    .map((line) => plain(line))
    .join("\n");

function show(facts: unknown, { json }: Values, { out }: CommandContext): void {
  out(json === true ? `${JSON.stringify(facts, null, 2)}\n` : plainFacts(Object(facts)));
}
