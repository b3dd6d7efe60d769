//! Pages of results as a browser shows them.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::explain::UNSHARP;
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
    /// A browser with a page of everything that was measured.
    fn with_page() -> Option<Browser> {
        Browser::with(measured, &[BOTH])
    }

    /// A browser with the pages that some commands write; `None`, with a note, where there is no Chromium.
    fn with(place: impl FnOnce() -> Place, commands: &[&str]) -> Option<Browser> {
        let program = Browser::program()?;
        let place = place();
        for command in commands {
            let ran = place.run(command);
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{command}");
        }
        Some(Browser { program, place })
    }

    /// A browser with the trace of a pipeline with tiles in shared memory and registers.
    fn with_trace() -> Option<Browser> {
        let schedules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../apps/schedules");
        let run = format!(
            "run unsharp --generate --schedule {schedules} --size 40x30 --device h200 --trace report.html"
        );
        Browser::with(Place::new, &[&run])
    }

    fn program() -> Option<PathBuf> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let mut paths =
            std::env::split_paths(&folders).flat_map(|folder| names.map(|name| folder.join(name)));
        let program = paths.find(|path| path.is_file());
        if program.is_none() {
            let required = std::env::var("WARPLOOM_REQUIRE_CHROMIUM").is_ok_and(|required| required == "1");
            assert!(!required, "WARPLOOM_REQUIRE_CHROMIUM is 1, and there is no Chromium");
            writeln!(io::stderr(), "skipped: there is no Chromium to look at pages with").unwrap_or_default();
        }
        program
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

    /// A copy of the report with more in its body.
    fn altered(&self, name: &str, more: &str) {
        self.altered_from("report.html", name, more);
    }

    fn altered_from(&self, page: &str, name: &str, more: &str) {
        let html = fs::read_to_string(self.place.path(page)).unwrap();
        fs::write(self.place.path(name), html.replace("</body>", &format!("{more}</body>"))).unwrap();
    }

    /// The width of a page in a window as narrow as that of a phone.
    fn width_on_a_phone(&self, page: &str) -> String {
        // No window is that narrow, but a frame is.
        let frame = "<iframe id=\"phone\" src=\"PAGE\" style=\"width:360px;height:800px\"></iframe><script>
            phone.onload = () => document.title = 'wide ' + phone.contentDocument.documentElement.scrollWidth;
            </script>";
        fs::write(self.place.path("phone.html"), frame.replace("PAGE", page)).unwrap();
        let output = self.open("phone.html", &["--dump-dom", "--allow-file-access-from-files"]);
        title(&output).replace("wide ", "")
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

/// The title of a page after its scripts ran.
fn title(output: &Output) -> String {
    let dom = String::from_utf8_lossy(&output.stdout);
    let title = dom.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    title.unwrap_or_else(|| panic!("no title in {dom}")).0.to_owned()
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
    for browser in [Browser::with_page(), Browser::with_trace()].into_iter().flatten() {
        browser.altered("wide.html", "<div style=\"width:700px\">.</div>");
        assert_eq!(browser.width_on_a_phone("report.html"), "360");
        assert!(browser.width_on_a_phone("wide.html").starts_with('7'));
    }
}

/// A browser with a page that explains a schedule of `unsharp`, and one that compares it with the default schedule.
fn with_explanation() -> Option<Browser> {
    let place = || {
        let place = Place::new();
        fs::write(place.path("unsharp.schedule"), UNSHARP).unwrap();
        place
    };
    let explain = "explain unsharp --schedule unsharp.schedule --device h200";
    let (one, two) =
        (format!("{explain} --html one.html"), format!("{explain} --against default --html two.html"));
    Browser::with(place, &[&one, &two])
}

#[test]
fn an_explanation_is_drawn_light_dark_and_narrow() {
    let Some(browser) = with_explanation() else { return };
    for page in ["one.html", "two.html"] {
        let output = browser.open(page, &["--dump-dom"]);
        assert_eq!(complaints(&output), Vec::<String>::new(), "{page}");
        let (paper, drawn) = browser.looks(page, "1280,2000", &[]);
        assert!(paper > 240 && (0.01..0.6).contains(&drawn), "{page}: {paper} {drawn}");
        let (paper, drawn) = browser.looks(page, "1280,2000", &[DARK]);
        assert!(paper < 40 && (0.01..0.6).contains(&drawn), "{page}: {paper} {drawn}");
        assert_eq!(browser.width_on_a_phone(page), "360", "{page}");
    }
    // The two schedules are beside each other where there is room, and below each other on a phone.
    let beside = "<script>document.title = [...document.querySelectorAll('.version')].map(
        (each) => Math.round(each.getBoundingClientRect().left)).join(' ');</script>";
    browser.altered_from("two.html", "beside.html", beside);
    let lefts = |width: &str| -> Vec<f64> {
        let output = browser.open("beside.html", &["--dump-dom", width]);
        title(&output).split(' ').map(|left| left.parse().unwrap()).collect()
    };
    let (wide, narrow) = (lefts("--window-size=1400,900"), lefts("--window-size=700,900"));
    assert!(wide[0] + 300.0 < wide[1] && narrow[0] == narrow[1], "{wide:?} {narrow:?}");
}

/// Asks a page for lines and code that are marked after an action, and whether the code was scrolled.
const MARKED: &str = "<script>
    const [lines, code] = [document.querySelectorAll('.line'), document.querySelector('.code')];
    const line = [...lines].find((line) => line.querySelector('b').textContent === 'NAME');
    const run = [...document.querySelectorAll('.run')].find((run) => run.textContent.includes('blur_y['));
    // A window without the focus moves it without a word.
    const told = (element, event) => document.hasFocus() || element.dispatchEvent(new FocusEvent(event, { bubbles: true }));
    const focus = (element) => { element.focus(); told(element, 'focusin'); };
    const leave = (element) => { element.blur(); told(element, 'focusout'); };
    ACTION;
    const named = [...document.querySelectorAll('.line.on b')].map((name) => name.textContent);
    const text = [...document.querySelectorAll('.run.on')].map((run) => run.textContent).join(' ');
    const writes = ['gray[', 'blur_y[', 'output[', 'blur_x['].filter((array) =>
        text.split('\\n').some((line) => line.trim().startsWith(array)));
    document.title = named.join(',') + ' ' + writes.join('') + ' ' + (code.scrollTop > 0);
    </script>";

#[test]
fn lines_of_an_explanation_lead_to_their_code_and_back() {
    let Some(browser) = with_explanation() else { return };
    let hover = "line.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }))";
    let leave = "focus(line); leave(line)";
    let cases = [
        ("gray", "focus(line)", "gray gray[ false"),
        ("gray", hover, "gray gray[ false"),
        ("output", "focus(line)", "output output[blur_x[ true"),
        ("blur_x", "focus(line)", "blur_x blur_x[ true"),
        ("gray", "focus(run)", "blur_y,kernel blur_y[ true"),
        ("gray", leave, "  false"),
    ];
    for (name, action, expected) in cases {
        browser.altered_from(
            "one.html",
            "marked.html",
            &MARKED.replace("NAME", name).replace("ACTION", action),
        );
        let output = browser.open("marked.html", &["--dump-dom", "--window-size=1280,1000"]);
        assert_eq!(complaints(&output), Vec::<String>::new(), "{action}");
        assert_eq!(title(&output), expected, "{name}: {action}");
    }
}

#[test]
fn an_explanation_needs_no_mouse() {
    let Some(browser) = with_explanation() else { return };
    // Whatever scrolls, and whatever has something to show, can be reached by the tab key.
    let missed = "<script>
        const needed = document.querySelectorAll('.line, .run, .box, .graph, .wide, pre, summary, a');
        const missed = [...needed].filter((each) => each.tabIndex < 0);
        document.title = needed.length + ' ' + missed.length;</script>";
    browser.altered_from("one.html", "missed.html", missed);
    let found = title(&browser.open("missed.html", &["--dump-dom"]));
    let (needed, missed) = found.split_once(' ').unwrap();
    assert!(needed.parse::<usize>().unwrap() > 20 && missed == "0", "{found}");
}

/// Uses the keyboard on a trace as a user would, and writes what is seen to the title.
const KEYS: &str = "<script>
const press = (key, shiftKey = false) =>
  document.body.dispatchEvent(new KeyboardEvent('keydown', { key, shiftKey, bubbles: true, cancelable: true }));
const where = () => document.querySelector('#where').textContent.split(':')[0];
const scrub = document.querySelector('#scrub');
const seen = [];
press('Home'); seen.push(where());
press('ArrowRight'); press('ArrowRight'); seen.push(where());
press('ArrowLeft'); seen.push(where());
press('ArrowRight', true); seen.push(document.querySelector('#where').textContent.split('block ')[1]);
press('ArrowRight', true); seen.push(document.querySelector('#where').textContent.split('block ')[1]);
press(' '); seen.push(document.querySelector('#play').textContent);
press(' '); seen.push(document.querySelector('#play').textContent);
scrub.value = 3; scrub.dispatchEvent(new Event('input')); seen.push(where());
const filled = (name) => {
  const figure = [...document.querySelectorAll('figure')].find((own) => own.querySelector('b').textContent === name);
  const canvas = figure.querySelector('canvas');
  const copy = document.createElement('canvas');
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const context = copy.getContext('2d', { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
  let opaque = 0;
  for (let at = 3; at < pixels.length; at += 4) opaque += pixels[at] === 255;
  return figure.dataset.computed + ' ' + Math.round((100 * opaque) / (canvas.width * canvas.height));
};
seen.push(filled('output'));
press('End'); seen.push(where(), scrub.value === scrub.max, filled('output'), filled('gray').split(' ')[0]);
document.title = seen.join(' | ');
</script>";

#[test]
fn a_trace_is_played_by_keyboard() {
    let Some(browser) = Browser::with_trace() else { return };
    let output = browser.open("report.html", &["--dump-dom"]);
    assert_eq!(complaints(&output), Vec::<String>::new());
    browser.altered("keys.html", KEYS);
    let output = browser.open("keys.html", &["--dump-dom"]);
    assert_eq!(complaints(&output), Vec::<String>::new());
    let dom = String::from_utf8(output.stdout).unwrap();
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).unwrap();
    let steps = dom.split("data-count=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let seen: Vec<&str> = title.split(" | ").collect();
    let before = format!("Before the first of {steps} steps");
    let [second, first, third, last] =
        ["2", "1", "3", steps].map(|number| format!("Step {number} of {steps}"));
    // The planes of the output fill three of four places; the fourth is blank.
    let expected = [
        &*before, &*second, &*first, "(0) of 2", "(1) of 2", "Pause", "Play", &*third, "0 27", &*last,
        "true", "3600 100", "1656",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_trace_is_drawn_light_and_dark_and_waits_where_motion_is_unwanted() {
    let Some(browser) = Browser::with_trace() else { return };
    for (paper, scheme) in [(true, &[][..]), (false, &[DARK][..])] {
        let (corner, drawn) = browser.looks("report.html", "1280,1600", scheme);
        assert_eq!(corner > 128, paper);
        assert!((0.01..0.5).contains(&drawn), "{drawn}");
    }
    let playing = |more: &[&str]| {
        browser.altered(
            "motion.html",
            "<script>document.title = document.querySelector('#play').textContent;</script>",
        );
        let arguments: Vec<&str> = ["--dump-dom"].into_iter().chain(more.iter().copied()).collect();
        let dom = String::from_utf8(browser.open("motion.html", &arguments).stdout).unwrap();
        dom.contains("<title>Pause</title>")
    };
    assert!(playing(&[]));
    assert!(!playing(&["--force-prefers-reduced-motion"]));
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
