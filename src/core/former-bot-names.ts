// What bots were called before their names were tokens of their user agents, and what they are called now. An
// old name that a customer wrote down holds for all bots that had it.
//
// Until 2026-11 a name was the flattened pattern of the crawler ("Ahrefs(Bot|SiteAudit)" gave
// "AhrefsBotSiteAudit"), or the first product of a user agent that no pattern matches. For published user
// agents, the table says what customers are told. Which user agents an old name holds for is decided at the
// edge, where it is still derived the old way (`src/agent/bots/`).

/** Old name = the names that its bots have now, including the old one where it is still a name. */
const text = String.raw`
;Owler = Owler
acoonbot = AcoonBot
acunetix = acunetix-product
AddThis = AddThis.com
AdsBot-Google-Mobile = AdsBot-Google-Mobile, AdsBot-Google-Mobile-Apps
AhrefsBotSiteAudit = AhrefsBot, AhrefsSiteAudit
air.ai/scanning = air.ai
amazon-kendra-customer-id-1234-1234-1234 = amazon-kendra-customer-id
amzn.to = Amazon-Route53-Health-Check-Service
AnyEvent = AnyEvent-HTTP
Archive-It = Archive-It, UM-Bentley-Archive-It
archive.org_bot = archive.org_bot, heritrix, special_archiver
AutomatonNewsify Feed Fetcher = Newsify Feed Fetcher
badcheese.com = WebbCrawler
Baidu-YunGuanCe = Baidu-YunGuanCe-Bot, Baidu-YunGuanCe-PerfBot, Baidu-YunGuanCe-SLABot, Baidu-YunGuanCe-ScanBot
Baidu-YunGuanCe = Baidu-YunGuanCe-VSBot
Baiduspider = Baiduspider, Baiduspider-render
Barkrowler = Barkrowler, BarkRowler
bingbot = bingbot, adidxbot
BlogTraffic/. Feed-Fetcher = BlogTraffic
build = Mediapartners-Google
Build = AlohaBrowser, DuplexWeb-Google, SyntheticsAgent, googleweblight, wechatdevtools
buzzbot = Buzzbot
careerbot = CareerBot
CFNetwork = SWCD, swcd
Chirpgotosocial = gotosocial
claudebot = claudebot, ClaudeBot
cludo = Cludo, cludo.com
coccoc = coccoc, coccocbot, coccocbot-image, coccocbot-web, image.coccoc, imagecoccoc
collection@infegy.com = infegy.com
ContextualBot outcomes.net = ContextualBot
convera = ConveraCrawler
crawl4ai = crawl4ai-adapter
Crawler = IP-Guide.com
CriOS = pageburst
Curebot = Curebot, curebot-feed-fetcher
Current RSS Reader = Current
cypex.ai/scanning = cypex.ai
Dalvik = googleweblight
DDG-Android-3.1.0 = DDG-Android
developers.google.com//web/snippet = developers.google.com
dirBuster = DirBuster
DMBrowser = DMBrowser, DMBrowser-BV
DnBCrawler = DnBCrawler-Analytics
domaincrawler = CipaCrawler
dotbot = dotbot, DotBot
DuckDuckBot = DuckDuckBot, DuckDuckBot-Https
exabot = Alexabot, Exabot, Exabot-Images, PyExalead
EzoicBot = EzoicBot-Nicheiq, EzoicBot-UptimeOwl
ezooms = Ezooms
Feedly = Feedly, FeedlyBot, MetaFeedly
Feedspot = Feedspot, Feedspotbot
filterdb.iss.net/crawler = oBot
FindFiles.net = FindFiles.net-FaviconFetcher
findlink = findlinks
findxbot = Findxbot
Gigablast = GigablastOpenSource
github.com = Nuclei, Wappalyzer
GlobalWebSearch = GlobalWebSearchx
Google-Area120 = Google-Area120-PrivacyPolicyFetcher
GoogleOther = GoogleOther, GoogleOther-Image, GoogleOther-Video
GoogleStackdriverMonitoring = GoogleStackdriverMonitoring-UptimeChecks
grub.org = grub-client
Hatena = Hatena, Hatena-Favicon, HatenaBookmark
HeadOnlyScraper = HeadOnlyScraper, HeadOnlyScraperV2
heritrix = heritrix, sukibot_heritrix
https://developers.cloudflare.com/security-center = developers.cloudflare.com
httpx = python-httpx
hubpages.com = HubPages
hyscore.io = HyScore
ia_archiver = ia_archiver, ia_archiver-web.archive.org
IDG/EU = IDG
inoreader = inoreader.com
iphone = intoli.com
iphone|Mozilla = iphone
KargoBot-Artemis = KargoBot-Artemis-Mobile
Known Agent = Known Agent, Known Agents
linkdex = linkdex.com, linkdexbot, linkdexbot-mobile
lipperhey = Lipperhey, Lipperhey-Kaus-Australis
Livelapbot = Livelapbot, LivelapBot
loc.gov/programs/web-archiving = loc.gov
loopimprovements.com = NetResearchServer
mappydata = Mappy
mechanize = Mechanize
MegaIndex = MegaIndex.ru
MicroMessenger = wechatdevtools
mlbot = MLBot
Mnogosearch-3.1.21 = Mnogosearch
Mozilla = Daum, GomezAgent, Google, Hydra, Jorgee, Mixnode, OffByOne, YottaaMonitor, baidu, feedbot
Mozilla = google_partner_monitoring, jsjcw_scanner, monitor.us, pageburst, secureurl.fwdcdn.com
mozilla = DatadogSynthetics, Google-AdWords-Express, Site24x7, Splunk
msnbot = msnbot, adidxbot, librabot, msnbot-NewsBlogs, msnbot-UDiscovery, msnbot-media
Netumonetumo = Netumo
newsharecounts = NewShareCounts.com
NextCloud = NextCloud-News
Nitro = Nitro, Nitro-Optimizer-Agent
Nokia5800d-1 = Nokia5800d
Nutch = Nutch, NutchCVS
Odin; = Odin
omgili = omgili, omgilibot
OneTrust = OneTrust, OneTrustBot
OPR = Anonymous
Owler ows.eu = Owler
page2rss = Page2RSS
panscient = panscient.com
pingdom = Pingdom.com, Pingdom.com_bot_version, PingdomPageSpeed, PingdomTMS, pingbot
pinterest.com/bot = Pinterest, Pinterestbot
postrank = PostRank
Preview = Quora, SkypeUriPreview
preview = SkypeUriPreview
productsup.io/crawler = productsup.io
psbot = psbot, psbot-image, psbot-page
python-opengraph = python-opengraph-jaywink
queryseeker.com = QuerySeekerSpider
Qwantbot = Qwantbot, Qwantbot-news
ResearchBot = StateOfPlay-ResearchBot
Riddler http://riddler.io = Riddler
rogerbot = rogerbot, rogerBot
RSS = Junkie
scraping@nytimes.com = nytimes.com
SearchAtlas = SearchAtlas.com
Seekport = Seekport, SeekportBot
semantic-visions = semantic-visions-discovery, semantic-visions.com
sempi.tech = Semanticbot
SemrushBot = SemrushBot, SEMrushBot, SemrushBot-BA, SemrushBot-SA, SemrushBot-SI
seo4ajax.com = seo4ajax.com, s4a
SEOkicks = SEOkicks, SEOkicks-Robot
seoscanners = seoscanners.net
seostar.co = Adsbot
Service = M2E
sindresorhus/got = got
sistrixSISTRIX crawler = SISTRIX Crawler
sitebot = Whoiswebsitebot
siteexplorer.info = SiteExplorer
Siteimprove.com = Siteimprove.com, LinkCheck
Slackbot = Slackbot, Slackbot-LinkExpanding
smtbot = SMTBot
Sogou = Sogou News Spider, Sogou Orion spider, Sogou Pic Spider, Sogou head spider, Sogou web spider, Sogou-Test-Spider
Sogou = SogouMSE
Sonic = Sonic, RankSonicSiteAuditor
speedy = speedy, Speedy
spider = Spider
Spider spider.com = Spider
SSL Labs https://www.ssllabs.com = SSL Labs
StatusCake = StatusCake, StatusCake_Uptime_Checker
suite.seozoom.it = ZoomBot
summify = Summify
support = domainreanimator.com
TinEye = TinEye, TinEye-bot
Turnitin = Turnitin, TurnitinBot
Ubuntu = WebMoney
Unshorten.It! = Unshorten.It
urlappendbot = URLAppendBot
Valve/Steam = Valve
visionheight.com/scan = visionheight.com
Vivaldi = Anonymous
voilabot = VoilaBot
W3C_CSS_Validator = W3C_CSS_Validator_JFouffa
Web Screen Service By hyperhost = Web Screen Service By hyperhost.ua
webspidermount = webspidermount, WSM
WeSEE:Search = WeSEE
wget = WGETbot, Wget
Wordup-1 = Wordup
WorldBot = WorldBot, SEOENGWorldBot
wotbox = Wotbox
www.analyticsseo.com = Curious
www.backlink-check.de = Backlink-Check.de
www.backlinktest.com = BacklinkCrawler
www.easou.com = EasouSpider
www.google.com = Feedfetcher-Google
www.jetbrains.com = JetBrains
www.openindex.io = OpenindexSpider
www.openwebspider.org = OpenWebSpider
www.sistrix.com = SISTRIX
www.uptime.com = Uptimebot
www.visualsitemapper.com = VSMCrawler
www.voila.com = VoilaBotCollector
www.yunyun.com = YYSpider
xovibot = XoviBot
XY-Archive-Compliance = XY-Archive-Compliance-Archiver, XY-Archive-Compliance-Crawler
Y!J = Y!J, Y!J-ASR, Y!J-BRJ, Y!J-BRW, Y!J-BRY, Y!J-PSC
yandex.com/bots = YaDirectFetcher, YandexAccessibilityBot, YandexAdNet, YandexBlogs, YandexBot, YandexCalendar, YandexDirect
yandex.com/bots = YandexDirectDyn, YandexFavicons, YandexForDomain, YandexImageResizer, YandexImages, YandexMarket
yandex.com/bots = YandexMedia, YandexMetrika, YandexMobileBot, YandexMobileScreenShotBot, YandexNews, YandexOntoDB
yandex.com/bots = YandexOntoDBAPI, YandexPagechecker, YandexPartner, YandexRCA, YandexScreenshotBot, YandexSearchShop
yandex.com/bots = YandexSitelinks, YandexSpravBot, YandexTracker, YandexTurbo, YandexUserproxy, YandexVerticals, YandexVertis
yandex.com/bots = YandexVideo, YandexVideoParser, YandexWebmaster
yanga = Yanga
yourls.org = YOURLS
ZoomInfo = ZoomInfo-DataEnrichment
ZoteroTranslationServer/WMF = ZoteroTranslationServer
`;

const present = read(text);

/**
 * Returns today's names of the bots that an old name holds for, among published user agents; empty if the
 * name is not an old one.
 */
export function presentNamesOf(oldName: string): readonly string[] {
  return present.get(oldName) ?? [];
}

function read(rows: string): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, readonly string[]>();
  for (const row of rows.trim().split("\n")) {
    const [old = "", present = ""] = row.split(" = ");
    names.set(old, [...(names.get(old) ?? []), ...present.split(", ")]);
  }
  return names;
}
