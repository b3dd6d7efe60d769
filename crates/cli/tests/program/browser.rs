//! Pages of results as a browser shows them.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::page::{BOTH, measured};
use crate::place::Place;

/// How Chromium is to behave: alone, unseen, and with a word on what goes wrong.
const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--enable-logging=stderr",
    "--hide-scrollbars",
];

const DARK: &str = "--blink-settings=preferredColorScheme=0";

/// A browser and a folder with a page.
struct Browser {
    program: PathBuf,
    place: Place,
}

impl Browser {
    /// A browser with a page of everything; `None`, with a note, where there is no Chromium.
    fn with_page() -> Option<Browser> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let mut paths =
            std::env::split_paths(&folders).flat_map(|folder| names.map(|name| folder.join(name)));
        let Some(program) = paths.find(|path| path.is_file()) else {
            let required = std::env::var("WARPLOOM_REQUIRE_CHROMIUM").is_ok_and(|required| required == "1");
            assert!(!required, "WARPLOOM_REQUIRE_CHROMIUM is 1, and there is no Chromium");
            writeln!(io::stderr(), "skipped: there is no Chromium to look at pages with").unwrap_or_default();
            return None;
        };
        let place = measured();
        let ran = place.run(BOTH);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        Some(Browser { program, place })
    }

    /// Opens a page as if for the first time.
    fn open(&self, page: &str, arguments: &[&str]) -> Output {
        let profile = self.place.path("profile");
        fs::remove_dir_all(&profile).unwrap_or_default();
        let output = Command::new(&self.program)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(arguments)
            .arg(format!("file://{}", self.place.path(page).display()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// A copy of the page with more in its body.
    fn altered(&self, name: &str, more: &str) {
        let html = fs::read_to_string(self.place.path("report.html")).unwrap();
        fs::write(self.place.path(name), html.replace("</body>", &format!("{more}</body>"))).unwrap();
    }

    /// How bright the page is in its corner, and the share of it that is not as bright as that.
    fn looks(&self, page: &str, size: &str, more: &[&str]) -> (u8, f64) {
        let file = self.place.path("page.png");
        let (picture, size) = (format!("--screenshot={}", file.display()), format!("--window-size={size}"));
        let arguments: Vec<&str> = [&*picture, &*size].into_iter().chain(more.iter().copied()).collect();
        self.open(page, &arguments);
        brightness(&file)
    }
}

fn brightness(file: &Path) -> (u8, f64) {
    let picture = warploom::interp::picture::read(file).unwrap();
    let samples: &[u8] = picture.as_slice().unwrap();
    let corner = samples[0];
    let drawn = samples.iter().filter(|sample| sample.abs_diff(corner) > 24).count();
    (corner, drawn as f64 / samples.len() as f64)
}

/// What the console of a page complained about: scripts, and what was not loaded.
fn complaints(output: &Output) -> Vec<String> {
    let lines = String::from_utf8_lossy(&output.stderr);
    lines.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect()
}

#[test]
fn a_page_is_whole_and_loads_nothing() {
    let Some(browser) = Browser::with_page() else { return };
    let output = browser.open("report.html", &["--dump-dom"]);
    assert_eq!(complaints(&output), Vec::<String>::new());
    let dom = String::from_utf8(output.stdout).unwrap();
    for part in
        ["<h2>The suite on fake</h2>", "<h2>blur at 200x120</h2>", "<h3>Side by side</h3>", "</footer>"]
    {
        assert!(dom.contains(part), "{part}");
    }
    assert_eq!(dom.matches("<section ").count(), 2);
    // Two charts of bars, a scatter plot and a staircase; one more if the winner has several kernels.
    let charts: Vec<&str> = dom.split("<svg ").skip(1).collect();
    assert_eq!(charts.len(), 4 + dom.matches("% of the predicted time").count());
    for chart in charts {
        let role = if chart.contains("<a ") { "role=\"group\"" } else { "role=\"img\"" };
        assert!(chart.contains(role) && chart.contains("aria-label=\""), "{chart}");
        assert!(chart.contains("<rect ") || chart.contains("<circle "), "{chart}");
    }

    // It would have been seen: the page's own policy refuses a picture from elsewhere.
    browser.altered("loads.html", "<img src=\"elsewhere.png\">");
    let seen = complaints(&browser.open("loads.html", &["--dump-dom"]));
    assert!(seen.iter().any(|line| line.contains("Content Security Policy")), "{seen:?}");
}

#[test]
fn a_page_is_drawn_light_and_dark() {
    let Some(browser) = Browser::with_page() else { return };
    let (paper, drawn) = browser.looks("report.html", "1280,2000", &[]);
    assert!(paper > 240 && (0.01..0.5).contains(&drawn), "{paper} {drawn}");
    let (paper, drawn) = browser.looks("report.html", "1280,2000", &[DARK]);
    assert!(paper < 40 && (0.01..0.5).contains(&drawn), "{paper} {drawn}");
    // A blank page would have been seen.
    browser.altered("blank.html", "<style>body { visibility: hidden; }</style>");
    let (_, drawn) = browser.looks("blank.html", "1280,2000", &[]);
    assert!(drawn < 0.001, "{drawn}");
}

#[test]
fn a_phone_needs_not_scroll_sideways() {
    let Some(browser) = Browser::with_page() else { return };
    // No window is as narrow as a phone, but a frame is.
    let frame = "<iframe id=\"phone\" src=\"PAGE\" style=\"width:360px;height:800px\"></iframe><script>
        phone.onload = () => document.title = 'wide ' + phone.contentDocument.documentElement.scrollWidth;
        </script>";
    browser.altered("wide.html", "<div style=\"width:700px\">.</div>");
    for (page, expected) in [("report.html", "<title>wide 360</title>"), ("wide.html", "<title>wide 7")] {
        fs::write(browser.place.path("phone.html"), frame.replace("PAGE", page)).unwrap();
        let output = browser.open("phone.html", &["--dump-dom", "--allow-file-access-from-files"]);
        let dom = String::from_utf8_lossy(&output.stdout);
        assert!(dom.contains(expected), "{page}: {dom}");
    }
}

#[test]
fn a_dot_leads_to_its_trial_by_keyboard() {
    let Some(browser) = Browser::with_page() else { return };
    let frame = "<iframe id=\"page\" src=\"report.html\" style=\"width:1000px;height:600px\"></iframe><script>
        page.onload = () => {
          const inside = page.contentDocument;
          const stops = Array.from(inside.querySelectorAll('.chart a')).filter((link) => link.tabIndex >= 0);
          stops[0].focus();
          const focused = inside.activeElement === stops[0];
          stops[0].dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, view: page.contentWindow }));
          setTimeout(() => {
            const row = inside.querySelector('tr:target');
            const style = row && page.contentWindow.getComputedStyle(row).outlineStyle;
            document.title = `stops ${stops.length > 0} focused ${focused} ${row && row.id.slice(0, 8)} ${style}`;
          }, 100);
        };
        </script>";
    fs::write(browser.place.path("keys.html"), frame).unwrap();
    let flags = ["--dump-dom", "--allow-file-access-from-files", "--virtual-time-budget=5000"];
    let output = browser.open("keys.html", &flags);
    assert_eq!(complaints(&output), Vec::<String>::new());
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(dom.contains("<title>stops true focused true trial-2- solid</title>"), "{dom}");
}

#[test]
fn a_watched_page_stays_where_it_is() {
    let Some(browser) = Browser::with_page() else { return };
    let arguments = "report tuning.db --device h200 --watch -o live.html";
    let mut watching =
        browser.place.command().args(arguments.split(' ')).stdout(Stdio::null()).spawn().unwrap();
    while !browser.place.path("live.html").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    watching.kill().unwrap();
    watching.wait().unwrap();
    let frame = "<iframe id=\"page\" src=\"live.html\" style=\"width:700px;height:500px\"></iframe><script>
        let loads = 0;
        page.onload = () => {
          loads += 1;
          const [inside, details] = [page.contentWindow, page.contentDocument.querySelector('details')];
          if (loads === 1) {
            inside.scrollTo(0, 321);
            details.open = true;
          } else if (loads === 2) {
            document.title = `at ${inside.scrollY}, open ${details.open}`;
          }
        };
        </script>";
    fs::write(browser.place.path("watched.html"), frame).unwrap();
    let flags = ["--dump-dom", "--allow-file-access-from-files", "--virtual-time-budget=8000"];
    let output = browser.open("watched.html", &flags);
    assert_eq!(complaints(&output), Vec::<String>::new());
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(dom.contains("<title>at 321, open true</title>"), "{dom}");
}
