// Tells the browsers and apps of people from bots where isbot finds a sign of one. Its signs are words, and telephones, television sets and apps have such words in
// their names: "GM Discovery II", "CUBOT", "Newsday_A2", "OMI/4.20.3.54.Catcher2".
//
// A sign says nothing where something else explains it:
//
//   model      it stands in the description of a telephone or a television set, without a version of its own
//   browser    the agent is a browser's, and the sign is a word that browsers have as well
//   app        the agent names the system of a device that people hold, and the sign is no word that only bots have
//   player     the agent is a player of sound and pictures, and nothing else
// Nothing explains it where the agent says whose it is, by an address, or introduces itself behind "compatible;": bots do, browsers do not.

import type { TokenPlace } from "./agent-tokens.ts";

/** Makes one expression of alternatives that are separated by blanks; `_` stands for a blank in them. */
const anyOf = (alternatives: string, flags = "i"): RegExp =>
  new RegExp(alternatives.trim().replaceAll(/\s+/g, "|").replaceAll("_", " "), flags);

/** Words that no app of people has. */
const ofBotsOnly = anyOf(`
  bots?(?![a-z]) crawl spider scrap slurp headless phantom selenium playwright puppeteer scan validator monitor check synthetic preview inspect python perl php wget curl httrack nutch
  archiv index fetch parser proxy feed rss agent advisor optimi[sz]e audit analy[sz]er transcoder library claude openai cloudflare devtools swcd ^reed ^read podcast downcast
`);

/** Signs that the browsers of people have as well, behind the description of the device. */
const ofBrowsersToo =
  /^(?:[^g]?news|catch|java|tools|server|\.com|http|download|discovery|capture|radar|url|library|sogou|\||\(\)|\w+\/1\.0;|;\s\w+;)$/i;
const googleProducts = /^google ?(?:Earth|TV|App|Play|Nexus|Pixel)/i;

/** Browsers of people that bear the name of their owner's crawler. */
const namesakes = /Sogou(?:MSE|MobileBrowser|Search)/;

/** An address by which bots say whose they are. */
const contact = /https?:\/\/|www\.|@[\w-]+\.|\bat\b [\w-]+ \bdot\b|\[at\]/i;

/** "compatible;" with something else behind it than an old browser, or a word in the comment that each engine has. */
const introduced =
  /compatible; ?(?!MSIE|Konqueror|IBrowse|NetFront|OmniWeb|U;|iCab|ABrowse)|like Gecko; ?[A-Za-z]/i;

/** What draws pages. */
const engine = anyOf(
  "AppleWebKit/ Gecko/\\d Presto/ Trident/ MSIE_\\d KHTML NetFront Dolfin/ Obigo UCBrowser UCWEB Opera[/_] POLARIS Dillo Servo/ Goanna/ WAP.?Browser",
);

/** The systems of telephones, tablets, watches, consoles and television sets, as their apps name them. */
const device = anyOf(`
  CFNetwork/[\\d.]+_Darwin Dalvik/ Android[_/;)] \\biOS[_/;,)] iPadOS iPhone iPad\\d \\biPh\\d watchOS Watch_OS tvOS HarmonyOS KAIOS Tizen Web0S webOS Windows_Phone BlackBerry SymbianOS
  MIDP- \\bWAP\\d WAP.Browser J2ME BREW/ \\bMAUI\\b \\bMRE\\b HbbTV NETTV SMART-TV SmartTV RokuOS ^Roku \\bAFT[A-Z]+ DLNADOC Fire_?OS PlayStation Xbox Nintendo Garmin_
`);

/** Players of sound and pictures that name themselves and no system, such as VLC's and those of Windows. */
const player = /^(?:Lavf|NSPlayer)\/[\d.]+$/;

/** The systems with which such devices begin their description. */
const modelBegins =
  /^(?:Mozilla|Opera|Dalvik)\/[\d.]+ (?:\[\w+\] )?\((?=Linux|Android|Windows Phone|compatible; MSIE [\d.]+; Windows Phone|iPhone|iPad|iPod|SAMSUNG|SMART|Tizen|Web0S|PlayStation|Nintendo|BlackBerry|BB10|Symbian|Series|Mobile|Tablet|Sonim)/;

/** Whether what looks like a known crawler may be a browser of the same owner. */
export function isNamesake(agent: string): boolean {
  return namesakes.test(agent);
}

/** Whether everything that makes the agent look like a bot's has another reason. `signs`: where isbot finds it. */
export function isOfPeople(agent: string, signs: readonly TokenPlace[]): boolean {
  if (player.test(agent)) return true;
  if (contact.test(agent) || introduced.test(agent)) return false;
  if (!engine.test(agent) && !device.test(agent)) return false;
  const isInCostume = /^(?:Mozilla|Opera)\//i.test(agent);
  // A name that somebody put before a browser's agent is no part of a browser, but for some television sets.
  if (!isInCostume && /Mozilla\//i.test(agent) && !/NETTV|Tbrowser/.test(agent)) return false;
  const model = modelIn(agent);
  return signs.every((sign) => {
    const text = agent.slice(sign.from, sign.to);
    if (model !== undefined && model.from <= sign.from && sign.to <= model.to)
      return text.includes("/") || !/^[\w.!&'~-]*\/v?\d/.test(agent.slice(sign.to));
    if (ofBotsOnly.test(wordAt(agent, sign))) return false;
    return !isInCostume || ofBrowsersToo.test(text) || googleProducts.test(agent.slice(sign.from));
  });
}

/** Returns where a browser describes its device: the first comment. */
function modelIn(agent: string): TokenPlace | undefined {
  const from = modelBegins.exec(agent)?.[0].length;
  if (from === undefined) return undefined;
  let [to, depth] = [from, 1];
  for (; to < agent.length && depth > 0; to++) {
    if (agent[to] === "(") depth++;
    else if (agent[to] === ")") depth--;
  }
  return { from, to };
}

/** Returns the sign, and what is written together with it. */
function wordAt(agent: string, { from, to }: TokenPlace): string {
  const before = /[\w.!&'~-]*$/.exec(agent.slice(Math.max(0, from - 64), from))?.[0] ?? "";
  const behind = /^[\w.!&'~-]*/.exec(agent.slice(to, to + 64))?.[0] ?? "";
  return before + agent.slice(from, to) + behind;
}
