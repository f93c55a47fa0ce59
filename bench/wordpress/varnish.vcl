# Varnish as the guides of the field have it for WordPress: other cookies than WordPress's own are taken away.
vcl 4.1;
backend origin { .host = "127.0.0.1"; .port = "{{origin_port}}"; }
sub vcl_recv {
  if (req.method != "GET" && req.method != "HEAD") { return (pass); }
  if (req.url ~ "wp-admin|wp-login|xmlrpc|preview=true") { return (pass); }
  if (req.http.Cookie ~ "wordpress_logged_in|comment_author|wp-postpass|wordpress_no_cache") { return (pass); }
  unset req.http.Cookie;
  return (hash);
}
sub vcl_backend_response { if (!bereq.uncacheable && beresp.status == 200) { set beresp.ttl = 5m; } }
sub vcl_deliver { if (obj.hits > 0) { set resp.http.X-Cache = "HIT"; } }
