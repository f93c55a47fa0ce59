// One of the two workers that are compared: an edge before the origin, its visitors, and all that it says of itself. Its clock stands still unless it is
// turned.

import { setImmediate as turn } from "node:timers/promises";
import { Flights } from "../../../../src/agent/accelerator/cached/flights.ts";
import {
  ImageMaker,
  type ImageOffer,
} from "../../../../src/agent/accelerator/cached/image-maker.ts";
import { VariantMaker } from "../../../../src/agent/accelerator/cached/variant-maker.ts";
import type { FlightPlan } from "../../../../src/agent/accelerator/cached/flight.ts";
import type { VariantJob } from "../../../../src/agent/accelerator/cached/variant-maker.ts";
import { createJudge } from "../../../../src/agent/bots/decisions/evidence.ts";
import { openClaimedBots } from "../../../../src/agent/bots/unreviewed/user-agents.ts";
import { codeOf } from "../../../../src/core/faults.ts";
import type { ServingState } from "../../../../src/core/serving/serving-state.ts";
import { proxyV1 } from "../../../support/proxy-headers.ts";
import { RawVisitor } from "../../../support/raw-visitor.ts";
import { Edge, host, type EdgeParts } from "../edge.ts";
import { ca } from "../secure-clients.ts";
import { Http2Asker } from "./http2-asker.ts";
import { NotedCache } from "./noted-cache.ts";
import { portSign, type AskedOf } from "./requests.ts";
import type { Scene } from "./scenes.ts";

/** No real time: what a clock of the host says is told apart from what the worker's says. */
const startMs = Date.UTC(2031, 4, 5, 6, 7, 8) + 0.25;
/** Only bounds the wait for a record that never comes. */
const recordsMs = 5_000;
const claimedBots = openClaimedBots();

export type SidePlan = {
  readonly scene: Scene;
  readonly blobsDir: string;
  readonly lane: boolean;
  /** Where it listens; the other side listens there too, on an address of its own. */
  readonly address: string;
  readonly ports?: { readonly plain: number; readonly secure: number } | undefined;
  readonly parts?: Partial<EdgeParts>;
};

/** Room for records that is given out one by one; the first part of a claim that found none is told. */
export class Room {
  left = Infinity;
  refusals = 0;

  claim(): boolean {
    if (this.left > 0) {
      this.left--;
      return true;
    }
    this.refusals++;
    return false;
  }
}

class NotingFlights extends Flights {
  readonly noted: string[];

  constructor(deps: ConstructorParameters<typeof Flights>[0], noted: string[]) {
    super(deps);
    this.noted = noted;
  }

  /** What is refreshed in the background is told, and not done: its end has no place in the order of answers. */
  override refresh({ path, fields, conditions }: FlightPlan): void {
    this.noted.push(`refresh ${path} ${JSON.stringify([fields, conditions])}`);
  }
}

class NotingMaker extends VariantMaker {
  readonly noted: string[];

  constructor(options: ConstructorParameters<typeof VariantMaker>[0], noted: string[]) {
    super(options);
    this.noted = noted;
  }

  override offer({ base, coding }: VariantJob): void {
    this.noted.push(`offer ${base.id} ${coding}`);
  }
}

class NotingImageMaker extends ImageMaker {
  readonly noted: string[];

  constructor(options: ConstructorParameters<typeof ImageMaker>[0], noted: string[]) {
    super(options);
    this.noted = noted;
  }

  override offer({ base, forms, settings }: ImageOffer): void {
    this.noted.push(`offer ${base.id} ${forms.join(" ")} ${settings.quality}`);
  }
}

type Slot = RawVisitor | Http2Asker;

export class Side implements AsyncDisposable {
  readonly edge: Edge;
  readonly cache: NotedCache;
  readonly room: Room;
  readonly unreviewed: string[];
  /** Forms that were to be made. */
  readonly offered: string[] = [];
  readonly name: string;
  securePort = 0;
  /** By the worker's clock, ms since the start. */
  readonly passed = { ageMs: 0, steadyMs: 0 };
  readonly #plan: SidePlan;
  readonly #slots = new Map<number, Slot>();
  /** Answers that have come in all. */
  #answered = 0;

  private constructor(plan: SidePlan) {
    const { scene, blobsDir, lane, parts } = plan;
    this.#plan = plan;
    this.name = lane ? "lane" : "pipeline";
    this.cache = new NotedCache();
    this.room = new Room();
    this.unreviewed = [];
    const { notes } = this.cache;
    const { passed } = this;
    this.edge = new Edge({
      ...scene.options,
      lane,
      blobsDir,
      cache: this.cache,
      laneLookMs: 60_000,
      clock: {
        wallMs: () => startMs + passed.ageMs,
        ageMs: () => startMs + passed.ageMs,
        steadyMs: () => 5_000.5 + passed.steadyMs,
      },
      judge: createJudge(claimedBots, (domain, { name }) =>
        this.unreviewed.push(`${domain} ${name}`),
      ),
      ...(scene.waitsForRoom && { recordRoom: this.room }),
      parts: {
        flights: (deps) => new NotingFlights(deps, notes),
        variants: (options) => new NotingMaker(options, this.offered),
        imageVariants: (options) => new NotingImageMaker(options, this.offered),
        ...parts,
      },
    });
  }

  static async open(plan: SidePlan): Promise<Side> {
    const { address, ports, scene } = plan;
    const side = new Side(plan);
    try {
      await side.edge.listen({ host: address, port: ports?.plain ?? 0 });
      if (scene.carrier === "tls" || scene.carrier === "http2")
        side.securePort = await side.edge.listenSecure({ host: address, port: ports?.secure ?? 0 });
      return side;
    } catch (error) {
      await side[Symbol.asyncDispose]();
      throw error;
    }
  }

  get nowMs(): number {
    return startMs + this.passed.ageMs;
  }

  /** The port that the scene's visitors come to. */
  get port(): number {
    const { carrier } = this.#plan.scene;
    return carrier === "tls" || carrier === "http2" ? this.securePort : this.edge.port;
  }

  publish(state: ServingState): void {
    this.edge.publish(state);
  }

  /** Whether the connection is open and may be asked on. */
  isOpen(slot: number): boolean {
    return this.#slots.get(slot)?.isOver === false;
  }

  async openSlot(slot: number, source: string): Promise<void> {
    this.leave(slot);
    this.#slots.set(slot, await this.#connect(source));
  }

  leave(slot: number): void {
    this.#slots.get(slot)?.[Symbol.dispose]();
    this.#slots.delete(slot);
  }

  async #connect(source: string): Promise<Slot> {
    const { address, scene } = this.#plan;
    const { port } = this;
    const secure = { servername: host, ca, ALPNProtocols: ["http/1.1"] };
    switch (scene.carrier) {
      case "plain":
        return RawVisitor.open({ address, port });
      case "proxy":
        return RawVisitor.open({ address, port, preface: proxyV1(source) });
      case "tls":
        return RawVisitor.open({ address, port, secure });
      case "http2":
        return Http2Asker.open(port, address);
      default:
        return scene.carrier satisfies never;
    }
  }

  /** Asks one after the other; fewer answers than requests where the connection ended. */
  async askInTurn(slot: number, requests: readonly AskedOf[]): Promise<readonly string[]> {
    const visitor = this.#visitor(slot);
    const answers: string[] = [];
    for (const request of requests) {
      if (visitor.isOver) break;
      answers.push(...(await this.#askAll(visitor, [request], [])));
    }
    return answers;
  }

  /** Writes all at once, or in pieces that end at `cuts`, which are shares of the whole. */
  async askAtOnce(
    slot: number,
    requests: readonly AskedOf[],
    cuts: readonly number[],
  ): Promise<readonly string[]> {
    const visitor = this.#visitor(slot);
    return visitor instanceof Http2Asker
      ? this.askInTurn(slot, requests)
      : this.#askAll(visitor, requests, cuts);
  }

  #visitor(slot: number): Slot {
    const visitor = this.#slots.get(slot);
    if (visitor === undefined) throw new TypeError("nobody is there");
    return visitor;
  }

  async #askAll(
    visitor: Slot,
    requests: readonly AskedOf[],
    cuts: readonly number[],
  ): Promise<readonly string[]> {
    const before = visitor.answers.length;
    if (visitor instanceof Http2Asker)
      for (const request of requests) await visitor.ask(this.#withPort(request));
    else await this.#write(visitor, requests, cuts);
    if (visitor.fault !== undefined) throw new Error(`${this.name}: ${visitor.fault}`);
    const answers = visitor.answers.slice(before);
    this.#answered += answers.filter(({ status }) => status >= 200).length;
    return answers.map(({ head, body }) => `${this.#undated(head)}\r\n${body}`);
  }

  async #write(
    visitor: RawVisitor,
    requests: readonly AskedOf[],
    cuts: readonly number[],
  ): Promise<void> {
    const isFinal = ({ status }: { readonly status: number }): boolean => status >= 200;
    const before = visitor.answers.filter(isFinal).length;
    const text = requests.map((request) => textOf(this.#withPort(request))).join("");
    const methods = requests.map(({ method }) => method);
    const places = [...cuts.map((share) => Math.floor(share * text.length)), text.length];
    let from = 0;
    for (const [no, to] of places.entries()) {
      if (no > 0) await turn();
      visitor.write(text.slice(from, to), no === 0 ? methods : []);
      from = to;
    }
    await visitor.final(before + requests.length);
  }

  #withPort({ fields, ...rest }: AskedOf): AskedOf {
    const said = fields.map(
      ([name, value]) => [name, value.replace(portSign, `${this.port}`)] as const,
    );
    return { ...rest, fields: said };
  }

  /** Whoever writes the Date of an answer that was made now may take the worker's clock or the host's. */
  #undated(head: string): string {
    return head.replaceAll(/^(date): (.*)$/gim, (line, name: string, said: string) => {
      const ms = Date.parse(said);
      const isNow =
        said === new Date(this.nowMs).toUTCString() || Math.abs(ms - Date.now()) < 60_000;
      return isNow ? `${name}: now` : line;
    });
  }

  /** Resolves when there is a record for each answer, or none is likely to come. */
  async recorded(): Promise<void> {
    const end = performance.now() + recordsMs;
    const { records } = this.edge;
    while (records.length < this.#answered && performance.now() < end) await turn();
    // One too many would come in the turns after.
    await turn();
  }

  /** What it has said of itself since it was asked last, by kind. */
  takeSaid(): Readonly<Record<string, readonly unknown[]>> {
    const { edge, cache, unreviewed } = this;
    return {
      records: edge.records.splice(0),
      claimed: edge.claimed.splice(0),
      decisions: edge.decisions.splice(0),
      notes: cache.notes.splice(0),
      unreviewed: unreviewed.splice(0),
      // One that is offered twice is made once.
      offered: [...new Set(this.offered.splice(0))],
      answered: [this.#takeAnswered()],
    };
  }

  #takeAnswered(): number {
    const answered = this.#answered;
    this.#answered = 0;
    return answered;
  }

  async metrics(): Promise<string> {
    const all = await this.edge.registry.metrics();
    return all.replaceAll(/^accel_agent_open_connections.*\n/gm, "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const slot of this.#slots.values()) slot[Symbol.dispose]();
    await this.edge[Symbol.asyncDispose]();
  }
}

function textOf({ method, target, fields, body }: AskedOf): string {
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}

/** Opens both sides on the same ports, for the port is a part of what is asked for. */
export async function openSides(
  plan: Omit<SidePlan, "lane" | "address" | "ports" | "parts">,
  parts: Partial<EdgeParts> = {},
): Promise<{ readonly lane: Side; readonly pipeline: Side }> {
  for (let tries = 0; ; tries++) {
    const lane = await Side.open({ ...plan, lane: true, address: "127.0.0.1", parts });
    const ports = { plain: lane.edge.port, secure: lane.securePort };
    try {
      const pipeline = await Side.open({ ...plan, lane: false, address: "127.0.0.2", ports });
      return { lane, pipeline };
    } catch (error) {
      await lane[Symbol.asyncDispose]();
      if (codeOf(error) !== "PORT_TAKEN" || tries === 20) throw error;
    }
  }
}
