//! The points of a session: every value of each axis with every value of the others.

use ringwise_bench::result::Point;

/// Each point once for each value, in the order of both. No value: the points as they are, with the workload's default.
pub(crate) fn cross<T>(points: Vec<Point>, values: &[T], set: impl Fn(&mut Point, &T)) -> Vec<Point> {
    if values.is_empty() {
        return points;
    }
    let with = |point: &Point, value: &T| {
        let mut point = point.clone();
        set(&mut point, value);
        point
    };
    points.iter().flat_map(|p| values.iter().map(move |v| (p, v))).map(|(p, v)| with(p, v)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_axis_varies_first_and_an_empty_one_is_left_out() {
        let points = cross(vec![Point::default()], &[64, 1024], |p, n| p.size_bytes = Some(*n));
        let points = cross(points, &[], |p, n: &u32| p.flows = Some(*n));
        let points = cross(points, &[1, 2], |p, n| p.threads = Some(*n));
        let got: Vec<_> = points.iter().map(|p| (p.size_bytes, p.flows, p.threads)).collect();
        let want = [(64, 1), (64, 2), (1024, 1), (1024, 2)].map(|(size, n)| (Some(size), None, Some(n)));
        assert_eq!(got, want);
    }
}
