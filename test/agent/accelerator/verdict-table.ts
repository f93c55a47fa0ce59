// The table of docs/bots.md as rows, the visitors that it speaks of, and which row is theirs.

import { readFileSync } from "node:fs";
import { join } from "node:path";

export type Address = "in the VIP list" | "in the bad list" | "in both lists" | "in no list";
export type Agent = "no bot's" | "none" | "a bot's without addresses" | "a bot's with addresses";
export type Access = "can access" | "can not access" | "none";

/** One visitor before one policy. */
export type Case = {
  readonly address: Address;
  readonly agent: Agent;
  readonly pair: "allow" | "deny" | "none";
  readonly domain: Access;
  readonly general: Access;
};

export type VerdictRow = {
  readonly cells: readonly string[];
  readonly verdict: string;
  readonly reason: string;
};

const head = "| Address | User agent | Pair | Domain policy | General policy | Verdict | Reason |";

export function readVerdictTable(): readonly VerdictRow[] {
  const path = join(import.meta.dirname, "../../../docs/bots.md");
  const lines = readFileSync(path, "utf8").split("\n");
  const from = lines.indexOf(head) + 2;
  const to = lines.findIndex((line, at) => at >= from && !line.startsWith("|"));
  return lines.slice(from, to).map((line) => {
    const cells = line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll("`", ""));
    const [verdict = "", reason = ""] = cells.slice(5);
    return { cells: cells.slice(0, 5), verdict, reason };
  });
}

/** The first row that fits. */
export function rowOf(rows: readonly VerdictRow[], one: Case): VerdictRow | undefined {
  const meant = [
    // VIP decides.
    one.address === "in both lists" ? ["in the VIP list"] : [one.address],
    agentCells[one.agent],
    [one.pair],
    [one.domain],
    [one.general],
  ];
  return rows.find(({ cells }) =>
    cells.every((cell, at) => cell === "any" || meant[at]?.includes(cell)),
  );
}

const agentCells: Readonly<Record<Agent, readonly string[]>> = {
  "no bot's": ["no bot's"],
  none: ["no bot's"],
  "a bot's without addresses": ["any bot's", "a bot's without addresses", "another bot's"],
  // Those of the tests are in the VIP list.
  "a bot's with addresses": ["any bot's", "a VIP bot's"],
};

export function everyCase(): readonly Case[] {
  const accesses = ["can access", "can not access", "none"] as const;
  const cases: Case[] = [];
  for (const address of [
    "in the VIP list",
    "in the bad list",
    "in both lists",
    "in no list",
  ] as const)
    for (const agent of [
      "no bot's",
      "none",
      "a bot's without addresses",
      "a bot's with addresses",
    ] as const)
      for (const pair of ["allow", "deny", "none"] as const)
        for (const domain of accesses)
          for (const general of accesses) cases.push({ address, agent, pair, domain, general });
  return cases;
}
