// A run of the leak hunt: visitors in random order at four sites, and the oracle asked of each answer.

import { applicationAt, type Application } from "./leaks-applications.ts";
import { Http1Door, Http2Door, type LeakAnswer } from "./leaks-doors.ts";
import { judge, type Finding } from "./leaks-judge.ts";
import { LeakOrigin } from "./leaks-origin.ts";
import { bestOf, historyOf, type Then } from "./leaks-best.ts";
import { Chance } from "./leaks-random.ts";
import { Records } from "./leaks-records.ts";
import { choose, kinds, ruleAt, type Edition, type Kind } from "./leaks-rules.ts";
import { LeakScene } from "./leaks-scene.ts";
import { newRequest, newVisitor, type LeakRequest, type Visitor } from "./leaks-visitors.ts";

export type LeakOptions = {
  readonly answers: number;
  readonly seed: number;
  /** Ends with the first finding. */
  readonly stopAtFirst?: boolean;
  /** Another program than the sources. */
  readonly main?: string;
};
export type Tally = {
  requests: number;
  /** Answered from the store. */
  hits: number;
  /** An ideal cache could have answered from what the origin had answered before. */
  best: number;
  /** Hits that no ideal cache could have, not even from what came while the request was on its way. */
  beyond: number;
  /** Waited for another's fetch. */
  collapsed: number;
};
export type LeakResult = {
  readonly answers: number;
  readonly unanswered: number;
  readonly applications: number;
  readonly originAnswers: number;
  readonly editions: number;
  readonly clears: number;
  readonly seconds: number;
  readonly byKind: ReadonlyMap<Kind, Tally>;
  readonly leaks: readonly string[];
  readonly mangled: readonly string[];
};

/** So many applications are asked for at a time, each about so often before it goes. */
const applicationsOpen = 40;
const requestsEach = 60;
const visitorsMax = 32;
const answersPerVisitor = 40;
const lanes = 12;
const streams = 4;
const answersPerChange = 1_000;
const shownMax = 20;
const bodyShownChars = 300;

/** So often somebody asks for what another has just asked for, so that fetches are met on their way. */
const sameTargetShare = 0.3;
/** Who asks next on a connection: the same visitor, or the one whose heads look like his. */
const sameVisitorShare = 0.5;
const twinShare = 0.25;

type Told = { readonly asked: LeakRequest; readonly answer: LeakAnswer; readonly edition: Edition };
type Target = Pick<LeakRequest, "domain" | "path" | "query">;
/** One way into the accelerator, and who used it last. */
type Way = { readonly scheme: "http" | "https"; readonly chance: Chance; lastWho: number };

type Came = {
  readonly asked: LeakRequest;
  readonly answer: LeakAnswer;
  readonly sentMs: number;
};

/** Visitors come in pairs: both send the same cookies and fields, with values of their own. */
const twinOf = (no: number): number => no ^ 1;

export async function huntLeaks(
  options: LeakOptions,
  say: (line: string) => void,
): Promise<LeakResult> {
  const hunt = new Hunt(options, say);
  return hunt.run();
}

class Hunt {
  readonly #options: LeakOptions;
  readonly #say: (line: string) => void;
  readonly #records = new Records();
  readonly #applications = new Map<string, Application>();
  readonly #open: Application[] = [];
  readonly #etags = new Map<string, string>();
  readonly #visitors: Visitor[] = [];
  readonly #byKind = new Map<Kind, Tally>(
    kinds.map((kind) => [kind, { requests: 0, hits: 0, best: 0, beyond: 0, collapsed: 0 }]),
  );
  readonly #leaks: string[] = [];
  readonly #mangled: string[] = [];
  #sent = 0;
  #answers = 0;
  #unanswered = 0;
  #beyondShown = 0;
  #latest: Target | undefined;
  #nextApplication = 0;
  #nextVisitor = 0;
  #changes = 0;

  constructor(options: LeakOptions, say: (line: string) => void) {
    this.#options = options;
    this.#say = say;
  }

  async run(): Promise<LeakResult> {
    const { seed, main } = this.#options;
    await using origin = await LeakOrigin.start(this.#records, this.#applications, seed);
    await using scene = await LeakScene.start(origin, seed, main);
    const began = performance.now();
    const doors: Promise<void>[] = [this.#change(scene)];
    for (let no = 0; no < lanes; no++)
      doors.push(this.#byHttp1(scene, Chance.of(seed, 10_000_000 + no)));
    for (let no = 0; no < streams; no++)
      doors.push(this.#byHttp2(scene, Chance.of(seed, 20_000_000 + no)));
    await Promise.all(doors);
    return {
      answers: this.#answers,
      unanswered: this.#unanswered,
      applications: this.#nextApplication,
      originAnswers: this.#records.count,
      editions: this.#changes + kinds.length,
      clears: scene.clears.length,
      seconds: (performance.now() - began) / 1_000,
      byKind: this.#byKind,
      leaks: this.#leaks,
      mangled: this.#mangled,
    };
  }

  get #isOver(): boolean {
    const { answers, stopAtFirst = false } = this.#options;
    return this.#sent >= answers || (stopAtFirst && this.#leaks.length > 0);
  }

  /** Other rules, and clears, while visitors come. */
  async #change(scene: LeakScene): Promise<void> {
    const chance = Chance.of(this.#options.seed, 30_000_000);
    let due = answersPerChange;
    while (!this.#isOver) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (this.#answers < due) continue;
      due += answersPerChange;
      const kind = chance.pick<Kind>(["free", "free", "free", ...kinds]);
      if (chance.is(0.25)) await scene.clear(kind);
      else {
        await scene.activate(kind);
        this.#changes++;
      }
      if (due % (10 * answersPerChange) === 0)
        this.#say(`${this.#answers} answers, ${this.#leaks.length} leaks`);
    }
  }

  async #byHttp1(scene: LeakScene, chance: Chance): Promise<void> {
    using door = new Http1Door(scene.edge.ports.visitors);
    const way: Way = { scheme: "http", chance, lastWho: 0 };
    while (!this.#isOver) {
      const count = chance.is(0.7) ? 1 : 1 + chance.below(4);
      const requests = Array.from({ length: count }, () => this.#draw(way));
      await this.#ask(scene, requests, () => door.ask(requests));
    }
  }

  async #byHttp2(scene: LeakScene, chance: Chance): Promise<void> {
    using door = new Http2Door(scene.tlsPort, scene.ca);
    const way: Way = { scheme: "https", chance, lastWho: 0 };
    while (!this.#isOver) {
      const request = this.#draw(way);
      await this.#ask(scene, [request], async () => [await door.ask(request)]);
    }
  }

  #draw(way: Way): LeakRequest {
    const { scheme, chance } = way;
    this.#sent++;
    if (this.#open.length < applicationsOpen || this.#sent % requestsEach === 0)
      this.#exchangeApplication();
    if (this.#visitors.length < visitorsMax || this.#sent % answersPerVisitor === 0)
      this.#exchangeVisitor();
    const visitor = this.#drawVisitor(way);
    way.lastWho = visitor.no;
    const { domain, path, query } = this.#drawTarget(chance);
    const etag = this.#etags.get(`${domain}${path}`);
    const request = newRequest(visitor, { domain, path, scheme, etag, query }, chance);
    this.#latest = request;
    return request;
  }

  #drawTarget(chance: Chance): Pick<Target, "domain" | "path"> & { readonly query?: string } {
    if (this.#latest !== undefined && chance.is(sameTargetShare)) {
      const { domain, path, query } = this.#latest;
      return { domain, path, ...(chance.is(0.7) && { query }) };
    }
    // Some are asked for much more often than others.
    const at = Math.floor(this.#open.length * chance.next() ** 2);
    return this.#open[this.#open.length - 1 - at] ?? applicationAt(this.#options.seed, 0);
  }

  #drawVisitor({ chance, lastWho }: Way): Visitor {
    const kind = chance.next();
    let no = chance.below(visitorsMax);
    if (kind < sameVisitorShare) no = lastWho % visitorsMax;
    else if (kind < sameVisitorShare + twinShare) no = twinOf(lastWho) % visitorsMax;
    const visitor = this.#visitors[no] ?? this.#visitors[0];
    if (visitor === undefined) throw new Error("nobody is there to ask");
    return visitor;
  }

  #exchangeApplication(): void {
    const made = applicationAt(this.#options.seed, this.#nextApplication++);
    this.#applications.set(`${made.domain}${made.path}`, made);
    this.#open.push(made);
    if (this.#open.length <= applicationsOpen) return;
    this.#open.shift();
    // Those that were open lately may still be on their way.
    const gone = applicationAt(this.#options.seed, this.#nextApplication - 3 * applicationsOpen);
    if (this.#nextApplication < 3 * applicationsOpen) return;
    this.#applications.delete(`${gone.domain}${gone.path}`);
    this.#etags.delete(`${gone.domain}${gone.path}`);
    this.#records.forget(gone.domain, gone.path);
  }

  #exchangeVisitor(): void {
    const no = this.#nextVisitor++;
    this.#visitors[no % visitorsMax] = newVisitor(
      no,
      Chance.of(this.#options.seed, 40_000_000 + Math.min(no, twinOf(no))),
      Chance.of(this.#options.seed, 50_000_000 + no),
    );
  }

  async #ask(
    scene: LeakScene,
    requests: readonly LeakRequest[],
    ask: () => Promise<readonly LeakAnswer[]>,
  ): Promise<void> {
    const sentMs = performance.now();
    let answers: readonly LeakAnswer[] = [];
    try {
      answers = await ask();
    } catch (error) {
      if (this.#unanswered < 5) this.#say(`unanswered: ${String(error)}`);
    }
    this.#unanswered += requests.length - answers.length;
    for (const [at, answer] of answers.entries()) {
      const asked = requests[at];
      if (asked !== undefined) this.#take(scene, { asked, answer, sentMs });
    }
  }

  #take(scene: LeakScene, { asked, answer, sentMs }: Came): void {
    this.#answers++;
    const said = new Map(answer.fields);
    const etag = said.get("etag");
    if (etag !== undefined) this.#etags.set(`${asked.domain}${asked.path}`, etag);
    const no = said.get("x-edition");
    const edition = scene.edition(asked.domain, no === undefined ? undefined : Number(no));
    if (edition === undefined) throw new Error(`no edition ${no} of ${asked.domain}`);
    // By then what was asked must have had its effect.
    if (asked.method === "POST") this.#reach(answer);
    const { clears } = scene;
    const wallMs = Date.now();
    this.#count(scene, { asked, edition, wallMs, sentMs }, said.get("cache-status") ?? "");
    const findings = judge(this.#records, (made) => scene.edition(made.domain, made.edition), {
      answer,
      asked,
      edition,
      wallMs,
      sentMs,
      clears,
    });
    for (const finding of findings) this.#tell(finding, { asked, answer, edition }, scene);
  }

  #reach({ fields }: LeakAnswer): void {
    const made = fields.find(([name]) => name === "x-made")?.[1] ?? "";
    const [, no] = / (\d+)>$/.exec(made) ?? [];
    if (no !== undefined) this.#records.reach(Number(no), performance.now());
  }

  #count(scene: LeakScene, answered: Omit<Then, "untilMs">, status: string): void {
    const { asked, sentMs } = answered;
    const kind = kinds.find((one) => asked.domain.startsWith(`${one}.`)) ?? "free";
    const tally = this.#byKind.get(kind);
    if (tally === undefined) return;
    const best = (untilMs: number): boolean =>
      bestOf(this.#records, scene, { ...answered, untilMs });
    const isHit = /; hit(?:;|$)/.test(status);
    const couldHit = best(sentMs);
    tally.requests++;
    if (isHit) tally.hits++;
    if (couldHit) tally.best++;
    if (isHit && !couldHit && !best(performance.now())) {
      tally.beyond++;
      if (this.#beyondShown++ < shownMax) this.#say(historyOf(this.#records, answered, status));
    }
    if (status.includes("collapsed")) tally.collapsed++;
  }

  #tell({ kind, why, made }: Finding, { asked, answer, edition }: Told, scene: LeakScene): void {
    const found = kind === "leak" ? this.#leaks : this.#mangled;
    const storedUnder = made && scene.edition(made.domain, made.edition);
    const text = [
      why,
      `${asked.method} ${asked.scheme}://${asked.domain}${asked.target} of V${asked.who} ${JSON.stringify(asked.lines)}`,
      `was given ${answer.status} ${JSON.stringify(answer.fields)} ${answer.body.toString("latin1", 0, bodyShownChars)}`,
      `by ${JSON.stringify(ruleAt(edition, choose(edition, asked)))}`,
      `made for V${made?.who} ${made?.method} ?${made?.query} ${JSON.stringify([...(made?.fields ?? [])])}`,
      `as ${made?.status} ${JSON.stringify(made?.said)} under ${JSON.stringify(storedUnder && made && ruleAt(storedUnder, choose(storedUnder, made)))}`,
    ].join("\n    ");
    if (found.length < shownMax) this.#say(`${kind} at ${this.#answers} answers: ${text}`);
    found.push(why);
  }
}
