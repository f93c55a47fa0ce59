// What kind of bot an agent is, so that each kind can have a policy of its own: who wants feed readers may not want crawlers.
//
//   feed      reads feeds or podcasts for people who subscribed
//   library   a program's HTTP library or a tool of the command line; whose program it is, it does not say
//   crawler   every other bot
//
// The package of known crawlers has tags for both; programs and frameworks that walk through sites are crawlers all the same, whoever runs them. What the package does not know is
// told by words: a library's is the product that the agent begins with, a feed reader's stands anywhere.

import type { BotClass } from "../../../core/serving/verdict.ts";
import type { Crawler } from "./crawlers.ts";

/** Makes one expression of alternatives that are separated by blanks; `_` stands for a blank in them. */
const anyOf = (alternatives: string): string =>
  `(?:${alternatives.trim().replaceAll(/\s+/g, "|").replaceAll("_", " ")})`;

/** What readers of feeds and podcasts call themselves, or what they read. */
const feedWords = new RegExp(
  anyOf(`
  (?<!in)feeds?(?!back|bot|ly_crawler) (?<![a-z])rss (?<=[a-z])RSS \\batom(?![a-z]) podcast podcatcher (?<!\\bi)pod\\b \\bpods\\b catcher\\b subscrib \\breaders?\\b (?:silver|wire|quite)reader ^reed(?:er)?\\b ^read(?:kit|kut|ably)\\b
  news_?(?:reader|blur|wire|rob|fire|flow|gator|beuter|boat|life|hub|explorer|fox)\\b aggregator(?!:) blog_?(?:lines|trottr|lovin|bridge) inoreader old_?reader bazqux miniflux liferea akregator gregarius ^vienna
  ^itms\\b ^spotify/ ^yarr/ downcast overcast icatcher \\bcastro\\b castbox castamatic castget antenna_?pod gpodder \\bitunes\\b apple-pubsub windows-rss thunderbird flipboard netvibes snarfer great_news omea \\bfever/ \\bunread\\b \\blire/ elfeed gwene simplepie magpie nextcloud-news
  \\bpulp/ \\bjuice/ castero breaker/ spreaker stitcher
`),
  "i",
);

/** The products with which agents of libraries and of tools of the command line begin. */
const libraryProducts = new RegExp(
  `^(?!.*(?:bot|crawl(?:er)?|spider|monitor|scanner|seo|elfeed)\\b)${anyOf(`
  (?:[a-z]+-)?(?:lib)?curl(?:-[a-z]+)* [a-z]*curl[a-z]*/ wget2? python[a-z.\\d_-]* perl php(?:-[a-z-]+)? ruby java[\\d._]* java-http-client go(?:lang)?-?http[a-z-]* go-[a-z]+ golang go okhttp[\\d]* (?:jakarta_)?[a-z.+-]*http-?client[a-z]* [a-z]+-?http(?:_client|lib)?/
  http(?:[-_.]?(?:get|request|unit|ie|ful|rb|kit|party|oxide|url)|urlconnection) httpx [a-z]+_HTTP_Client [a-z-]*rest-?client rest::client rest-?sharp unirest guzzle[a-z]* axios node(?:-fetch|\\.js|-superagent|(?=$|/)) bun deno electron-fetch undici got superagent
  requests?(?:\\.js)? req/v\\d urllib[\\d]* aio[a-z]+ libwww[a-z-]* lwp[a-z:-]* www-?mechanize mechanize faraday typhoeus insomnia postman[a-z]* apidog bruno-runtime paw aria2 libsoup winhttp wininet dart alamofire nsurl[a-z]* nscurl cfnetwork
  jersey akka[a-z-]* reqwest hyper ureq ktor[a-z-]* vert\\.x[a-z-]* netty jetty cpr cpprest[a-z]* fasthttp resty symfony slim_framework cakephp buzz snoopy pear em-http[a-z-]* patron curb net[:/]+http[a-z-]* quic-go[_-]http/\\d ahc asynchttp[a-z]* hackney
  httpoison tesla finch lua[a-z-]* emacs git git-annex svn debian_apt[a-z-]* apt-http dnf libdnf yum urlgrabber pacman zypper snapd docker containerd? containers buildkit buildah skopeo cri-o harbor-registry-client helm terraform ansible puppet chef
  s3cmd aws-(?:sdk|cli)[a-z-]* azsdk[a-z-]* azure-[a-z-]+ boto\\d? google-(?:api|http)[a-z-]* gvfs davfs\\d? webdav[a-z]* cadaver rclone (?:windows)?powershell microsoft[_-](?:bits|cryptoapi|webdav)[a-z-]* cryptoapi delphi indy_library embarcadero[_a-z]*
  btwebclient k6 jmeter locust gatling vegeta hey apachebench siege httperf wrk anyevent[a-z-]* pcore[a-z-]* jaunt jsoup open-?uri carrierwave filedownloader prdownloader down ocaml[a-z-]* haskell[a-z-]* libhttp [a-z_]*_libhttp geoipupdate
  pip npm yarn pnpm homebrew lftp reactornetty esp32_http[a-z_]* android\\.lvldm vimeo\\.php mandrill-php
`)}(?![a-z])`,
  "i",
);

/** PowerShell's commands begin as browsers do. */
const dressedLibrary = /^Mozilla\/5\.0 \([^()]*\) (?:Windows)?PowerShell\/\d[\w.-]*$/;

/** What the package tags as libraries, and what walks through whole sites. By the names that patterns have. */
const walkers: ReadonlySet<string> = new Set(
  "phpcrawl HTTrack SimpleCrawler crawler4j Scrapy colly GoParserBot larbin rawweb-bot".split(" "),
);

/** Returns the class of a bot. `known`: the crawler whose pattern matches. */
export function classOf(agent: string, known: Crawler | undefined): BotClass {
  if (known?.tags.includes("feed-reader") === true) return "feed";
  if (known?.tags.includes("http-library") === true)
    return walkers.has(known.name) ? "crawler" : "library";
  if (known !== undefined) return "crawler";
  if (libraryProducts.test(agent) || dressedLibrary.test(agent)) return "library";
  return feedWords.test(agent) ? "feed" : "crawler";
}
