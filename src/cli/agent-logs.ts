// `accel-agent logs`: request records as they come, and what of them central has not acknowledged.

import { callControl } from "../base/control-socket.ts";
import { sleep } from "../base/wait.ts";
import { AccelError, codeOf } from "../core/faults.ts";
import { parseTailArgument } from "../core/tail-query.ts";
import {
  columns,
  readArgs,
  type Command,
  type CommandContext,
  unknownVerb,
} from "../base/command.ts";
import { ask, agentOptions, agentUsage, renderFacts, socketPath } from "./control.ts";
import { renderRecord, unprovenText, type Unproven } from "./log-text.ts";

const options = {
  ...agentOptions,
  follow: { type: "boolean", short: "f" },
  lines: { type: "string", short: "n" },
  domain: { type: "string" },
  status: { type: "string" },
} as const;

type Values = ReturnType<typeof readArgs<typeof options>>["values"];

export const logsCommand: Command = {
  summary:
    "Shows the newest request records, or those that central has not acknowledged, with the balance accepted = committed + spooled + in memory + dropped.",
  usage: [
    "accel-agent logs tail [--follow] [--lines N] [--domain D] [--status 5xx|404]",
    "accel-agent logs backlog",
    "",
    "  --follow, -f      continue with new records, also after a restart of the agent, until interrupted",
    "  --lines N, -n N   at most N of the existing records, 0 to 10000 (default 10). The agent keeps about the last MiB",
    "                    in memory: after a restart there are only records of the new process",
    "  --domain D        only records of this domain or host",
    "  --status S        only records with this status, or this class of statuses",
    agentUsage,
    "",
    "With --json each record is one line. A reader that is too slow loses records and is told how many; central loses none of them.",
    "docs/logs.md says what the figures mean.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(context.args, options, 1);
    const [verb] = positionals;
    if (verb === "tail") return tail(values, context);
    if (verb !== "backlog") throw unknownVerb("logs", verb, ["tail", "backlog"]);
    const { follow, lines, domain, status } = values;
    if ([follow, lines, domain, status].some((one) => one !== undefined))
      throw new AccelError("USAGE", "--follow, --lines, --domain and --status go with tail only");
    const answer = await ask(socketPath("accel-agent", values), "logs-backlog", {}, context);
    context.out(
      values.json === true ? `${JSON.stringify(answer, null, 2)}\n` : renderBacklog(answer),
    );
  },
};

/** How often an agent that ended is asked whether it is back. */
const againMs = 1_000;

/** Prints records. With --follow it goes on with the next process when the agent restarts. */
async function tail(values: Values, context: CommandContext): Promise<void> {
  const { stop } = context;
  let { lines } = values;
  parseTailArgument(values); // What is wrong with the command is so with or without an agent.
  const path = socketPath("accel-agent", values);
  let [wasThere, hasEnded] = [false, false];
  const say = (text: string): void => void process.stderr.write(`accel-agent: ${text}\n`);
  const reached = (): void => {
    if (hasEnded && !wasThere) say("the agent is back");
    wasThere = true;
  };
  while (!stop.aborted) {
    try {
      const asked = { ...values, ...(lines !== undefined && { lines }) };
      await tailOnce(path, asked, context, reached);
    } catch (error) {
      if (stop.aborted) return; // Interrupted: that is how following ends.
      // One that hangs is ended by systemd.
      const isGone = ["CONTROL_UNREACHABLE", "CONTROL_SILENT"].includes(codeOf(error));
      const isAway = isGone && (wasThere || hasEnded);
      if (values.follow !== true || !isAway) throw error;
    }
    if (values.follow !== true || stop.aborted) return;
    if (wasThere) say("the agent has ended; this goes on when it is back, until interrupted");
    [wasThere, hasEnded] = [false, true];
    lines = allLines; // A new process has only records that were not printed here.
    await sleep(againMs, stop);
  }
}

/** As many as can be asked for. */
const allLines = "10000";

async function tailOnce(
  path: string,
  values: Values,
  { out, colour, stop }: CommandContext,
  reached: () => void,
): Promise<void> {
  const { follow = false, lines, domain, status, json } = values;
  const asked = { follow, lines, domain, status };
  const answers = callControl(path, "logs-tail", asked, stop);
  for await (const answer of answers) {
    const { following, record, missed } = Object(answer) as TailAnswer;
    if (following === false && follow)
      throw new AccelError("BUSY", "too many follow already: end one of them");
    if (following !== undefined) reached();
    if (record !== undefined)
      out(json === true ? `${JSON.stringify(record)}\n` : renderRecord(record, colour));
    if (missed !== undefined)
      out(json === true ? `{"missed":${missed}}\n` : `… ${missed} records left out here\n`);
  }
}

/** Each answer has one of these. */
type TailAnswer = {
  readonly following?: boolean;
  readonly record?: Readonly<Record<string, unknown>>;
  readonly missed?: number;
};

/**
 * Writes the lanes as a table below the sums. Their shape is LogFacts (agent/requests); what is missing
 * prints as nothing.
 */
function renderBacklog(answer: unknown): string {
  const { lanes = [], ...sums } = Object(answer) as { lanes?: readonly Lane[] } & Unproven;
  const rows = lanes.map(
    (lane) =>
      [
        `${lane.lane}${lane.live ? " live" : ""}`,
        `${lane.spooled} spooled, ${lane.in_memory} in memory, ${lane.committed} committed, ${lane.dropped} dropped${moreLost(lane)}; ${lane.bytes} bytes, oldest ${lane.oldest_s} s${lane.in_flight ? ", in flight" : ""}; ${answerText(lane)}`,
      ] as const,
  );
  return `${renderFacts(unprovenText(sums))}lanes:\n${columns(rows)}`;
}

type Lane = {
  readonly lane: string;
  readonly live: boolean;
  readonly spooled: number;
  readonly in_memory: number;
  readonly committed: number;
  readonly dropped: number;
  readonly bytes: number;
  readonly oldest_s: number;
  readonly in_flight: boolean;
  readonly answer: string | null;
  /** Agents of older releases do not state it. */
  readonly unproven?: number;
  readonly unknown?: number;
};

/** Writes what central said last, where anything waits for it or it was no commit. */
function answerText({ answer, spooled, in_memory: inMemory, in_flight: isInFlight }: Lane): string {
  const isIdle = spooled + inMemory === 0 && !isInFlight;
  if (isIdle && (answer === null || answer === "committed")) return "idle";
  return answer ?? "nothing sent";
}

function moreLost({ unproven = 0, unknown = 0 }: Lane): string {
  const known = unknown > 0 ? `, ${unknown} that only central knows` : "";
  return `${unproven > 0 ? `, at most ${unproven} more lost` : ""}${known}`;
}
