// The hand-over of decision 0114 as steps of two kinds of process and of systemd, without time: every order in which messages are heard, steps are made and
// processes are killed. What may never be, and what must be in the end, is judged over all worlds that can be reached.

/** What is planted into the model, so that the judge is seen to find it. */
export type HandOverBug =
  | "takes before all is closed"
  | "takes orders at once"
  | "an orphan goes on"
  | "does not return"
  | "is not made the main process";

type Phase =
  /** The whole agent: visitors, orders, state. `asked`: it has started a successor. */
  | "serves"
  | "asked"
  | "slack"
  /** The state is closed; connections that are open may still ask. */
  | "closed"
  | "returning"
  | "drains"
  | "quiet"
  /** A successor before, and after it has the state directory. */
  | "starts"
  | "ready"
  | "opens"
  | "accepts"
  | "main";

type Process = {
  readonly no: number;
  readonly parent: number | undefined;
  readonly phase: Phase;
  /** Its own successor, while it has one. */
  readonly child: number | undefined;
};

type Message = {
  readonly to: number;
  readonly kind: "ready" | "take" | "serving" | "main" | "quiet";
};

export type World = {
  readonly processes: readonly Process[];
  readonly messages: readonly Message[];
  /** As systemd has it. Undefined: it has seen the end of the one before. */
  readonly main: number | undefined;
  readonly started: number;
  readonly kills: number;
};

const startedMax = 5;

export function firstWorld(kills: number): World {
  const processes: readonly Process[] = [
    { no: 1, parent: undefined, phase: "serves", child: undefined },
  ];
  return { processes, messages: [], main: 1, started: 1, kills };
}

const writing: ReadonlySet<Phase> = new Set([
  "serves",
  "asked",
  "slack",
  "opens",
  "accepts",
  "main",
]);
const accepting: ReadonlySet<Phase> = new Set(["serves", "asked", "slack", "accepts", "main"]);
const beginning: ReadonlySet<Phase> = new Set([...accepting, "closed", "returning", "drains"]);

/** Returns what is wrong with a world; undefined: nothing. */
export function wrongWith({ processes }: World): string | undefined {
  const writers = processes.filter(({ phase }) => writing.has(phase));
  if (writers.length > 1) return "two processes have the state directory";
  const orders = processes.find(({ phase }) => phase === "serves" || phase === "asked");
  const others = processes.filter((one) => one !== orders && beginning.has(one.phase));
  if (orders !== undefined && others.length > 0)
    return "orders are taken while requests begin by what was in force before";
  return undefined;
}

/** Whether nothing is left to happen and somebody serves whom systemd follows. */
export function isWell({ processes, main }: World): boolean {
  const [one, ...others] = processes;
  return others.length === 0 && one !== undefined && one.no === main && one.phase === "serves";
}

/** Returns every world that one step leads to. `kills`: whether somebody may be killed. */
export function* stepsFrom(world: World, bug?: HandOverBug): Generator<World> {
  for (const process of world.processes) {
    yield* ownSteps(world, process, bug);
    if (world.kills > 0) yield { ...without(world, [process.no]), kills: world.kills - 1 };
  }
  // A channel keeps the order of what is sent to one process.
  for (const { no } of world.processes) {
    const message = world.messages.find(({ to }) => to === no);
    if (message !== undefined) yield heard(world, message, bug);
  }
  yield* systemd(world);
}

function* ownSteps(world: World, process: Process, bug: HandOverBug | undefined): Generator<World> {
  const { no, phase, child, parent } = process;
  const hasChild = world.processes.some((one) => one.no === child);
  const hasParent = world.processes.some((one) => one.no === parent);
  const go = (next: Phase): World => change(world, no, { phase: next });
  switch (phase) {
    case "serves":
      // One hand-over in each walk is asked for, and another one of the process that has succeeded.
      if (world.started < 3) yield start(go("asked"), no);
      return;
    case "asked":
      if (!hasChild) yield change(go("serves"), no, { child: undefined });
      return;
    case "slack":
      if (!hasChild) yield change(go("serves"), no, { child: undefined });
      else if (bug === "takes before all is closed")
        yield send(world, { to: child ?? 0, kind: "take" });
      else yield send(go("closed"), { to: child ?? 0, kind: "take" });
      return;
    case "closed":
      if (!hasChild && bug !== "does not return" && world.started < startedMax)
        yield start(go("returning"), no);
      return;
    case "returning":
      // Neither release can be started: systemd is to do it.
      if (!hasChild) yield without(world, [no]);
      return;
    case "drains":
      if (!hasChild) yield without(world, [no]);
      else yield send(go("quiet"), { to: child ?? 0, kind: "quiet" });
      return;
    case "quiet":
      yield without(world, [no]);
      return;
    case "starts":
      yield send(go("ready"), { to: parent ?? 0, kind: "ready" });
      break;
    case "opens":
      yield send(go("accepts"), { to: parent ?? 0, kind: "serving" });
      break;
    case "main":
      if (!hasParent || bug === "takes orders at once") yield go("serves");
      return;
    case "ready":
    case "accepts":
      break;
    default:
      phase satisfies never;
  }
  if (!hasParent && bug !== "an orphan goes on") {
    // What the one before had sent is heard before its end is.
    if (!world.messages.some(({ to }) => to === no)) yield without(world, [no]);
  }
}

function heard(world: World, message: Message, bug: HandOverBug | undefined): World {
  const rest = { ...world, messages: world.messages.filter((one) => one !== message) };
  const { to: no, kind } = message;
  const phase = world.processes.find((one) => one.no === no)?.phase;
  const child = world.processes.find((one) => one.no === no)?.child;
  const go = (next: Phase): World => change(rest, no, { phase: next });
  if (kind === "ready" && phase === "asked") return go("slack");
  if (kind === "ready" && phase === "returning")
    return send(rest, { to: child ?? 0, kind: "take" });
  if (kind === "take") return go("opens");
  if (kind === "serving" && (phase === "closed" || phase === "returning")) {
    const main = bug === "is not made the main process" ? rest.main : child;
    return send({ ...go("drains"), main }, { to: child ?? 0, kind: "main" });
  }
  if (kind === "main" && phase === "accepts") return go("main");
  if (kind === "quiet" && phase === "main") return go("serves");
  return rest;
}

/** It hears of the end of the main process, whose parent it is from before it is told of it. It ends what is left of the unit, and starts it again. */
function* systemd(world: World): Generator<World> {
  const { processes, main, started } = world;
  if (processes.some(({ no }) => no === main)) return;
  if (processes.length > 0)
    yield without(
      world,
      processes.map(({ no }) => no),
    );
  else {
    const no = started + 1;
    const fresh: Process = { no, parent: undefined, phase: "serves", child: undefined };
    yield { ...world, processes: [fresh], messages: [], main: no, started: no };
  }
}

function start(world: World, parent: number): World {
  const no = world.started + 1;
  const process: Process = { no, parent, phase: "starts", child: undefined };
  const processes = [...change(world, parent, { child: no }).processes, process];
  return { ...world, processes, started: no };
}

function change(world: World, no: number, to: Partial<Process>): World {
  const processes = world.processes.map((one) => (one.no === no ? { ...one, ...to } : one));
  return { ...world, processes };
}

function without(world: World, gone: readonly number[]): World {
  const processes = world.processes.filter(({ no }) => !gone.includes(no));
  const messages = world.messages.filter(({ to }) => !gone.includes(to));
  return { ...world, processes, messages };
}

function send(world: World, message: Message): World {
  const isThere = world.processes.some(({ no }) => no === message.to);
  return isThere ? { ...world, messages: [...world.messages, message] } : world;
}
